/**
 * The loop over PersistentVolumes that are made from snapshots: this node fills those that name it, and takes off the
 * finalizer that says that they are not filled yet. One that is deleted meanwhile, or left to another node, is given up;
 * the data of what is deleted goes after that (volume-keeper.ts).
 */
import { COPY_NODE_ANNOTATION, LOCAL_DRIVER, VOLUME_COPY_FINALIZER } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { CancellableWork } from '#node/agent/cancellable-work.ts';
import { dropFinalizer } from '#node/agent/drop-finalizer.ts';
import type { Volumes } from '#node/volumes-port.ts';
import type { EventSink } from '#runtime/events.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue } from '#runtime/work-queue.ts';

export interface FillKeeperParts {
  readonly client: Client;
  readonly node: string;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly volumes: Volumes;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Each of them reads and writes as fast as the disk can. */
const CONCURRENCY = 2;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

/** To be called when the informer has synced. */
export function startFillKeeper(parts: FillKeeperParts): { idle(): Promise<void>; stop(): Promise<void> } {
  const { persistentVolumes, events, clock, log, signal } = parts;
  const running = new CancellableWork();
  const rules = new ReadRules({ name: 'fill-keeper', followed: [PERSISTENT_VOLUMES], rechecks: [] });
  const queue = new WorkQueue({
    clock,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    work: (name) => rules.run(() => fill(name, running, parts)),
    onError: (name, error, { delayMs }) => {
      if (signal.aborted) return;
      log.error({ err: error, volume: name, delayMs }, 'Cannot fill a volume; trying again');
      const volume = persistentVolumes.get(name);
      const message = error instanceof Error ? error.message : String(error);
      // A volume has no status for it; whoever waits for the data finds out here.
      if (volume !== undefined) events.record(volume, { type: 'Warning', reason: 'VolumeCopyFailed', message });
    },
  });
  const leave = persistentVolumes.onChange((name, change) => {
    const isOurs = isToFill(change.new, parts.node);
    if (!isOurs || change.new.metadata.deletionTimestamp !== undefined) running.cancel(name);
    if (isOurs) queue.add(name);
  });
  return {
    idle: () => queue.idle(),
    async stop() {
      leave();
      await queue.shutdown();
    },
  };
}

async function fill(name: string, running: CancellableWork, parts: FillKeeperParts): Promise<void> {
  const { persistentVolumes, volumes, signal } = parts;
  const volume = persistentVolumes.get(name);
  if (!isToFill(volume, parts.node)) return;
  if (volume.metadata.deletionTimestamp === undefined) {
    const outcome = await running.run(name, signal, (given) => volumes.fill(volume, { signal: given }));
    // Its deletion is news, and on the queue.
    if (outcome === 'cancelled') return;
  }
  await dropFinalizer(PERSISTENT_VOLUMES, persistentVolumes.get(name) ?? volume, VOLUME_COPY_FINALIZER, parts);
}

function isToFill<T extends PersistentVolume>(volume: T | undefined, node: string): volume is T {
  return (
    volume?.spec.csi?.driver === LOCAL_DRIVER &&
    volume.metadata.annotations?.[COPY_NODE_ANNOTATION] === node &&
    (volume.metadata.finalizers ?? []).includes(VOLUME_COPY_FINALIZER)
  );
}

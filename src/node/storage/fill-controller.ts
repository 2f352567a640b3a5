/**
 * The control loop over PersistentVolumes that are created from snapshots: fills those assigned to this node, and then
 * removes the finalizer that marks them as unfilled. Stops filling a volume that is deleted or assigned to another node;
 * volume-controller.ts then removes the data of deleted ones.
 */
import { COPY_NODE_ANNOTATION, LOCAL_DRIVER, VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import { CancellableWork } from '#node/storage/cancellable-work.ts';
import { removeNodeFinalizer } from '#node/storage/guarded-patch.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import type { StorageLoop, StorageParts } from '#node/storage/storage-parts.ts';
import { WorkQueue } from '#runtime/work-queue.ts';
import { errorMessage } from '#lib/error-message.ts';

type FillParts = Pick<
  StorageParts,
  'client' | 'node' | 'persistentVolumes' | 'volumes' | 'events' | 'clock' | 'log' | 'signal'
>;

/** Low, because each fill uses the full speed of the disk. */
const CONCURRENCY = 2;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

/** Starts the loop. Call it when the informer has synced. */
export function startFillController(parts: FillParts): StorageLoop {
  const { persistentVolumes, events, clock, log, signal } = parts;
  const running = new CancellableWork();
  const rules = new ReadRules({ name: 'node-volume-fill', followed: [PERSISTENT_VOLUMES], rechecks: [] });
  const queue = new WorkQueue({
    clock,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    work: (name) => rules.run(() => fill(name, running, parts)),
    onError: (name, error, { delayMs }) => {
      if (signal.aborted) return;
      log.error({ err: error, volume: name, delayMs }, 'Cannot fill a volume; it will be tried again');
      const volume = persistentVolumes.get(name);
      const message = errorMessage(error);
      // A PersistentVolume has no status for this, so users who wait for the data see an Event.
      if (volume !== undefined) events.record(volume, { type: 'Warning', reason: 'VolumeCopyFailed', message });
    },
  });
  const unsubscribe = persistentVolumes.onChange((name, change) => {
    const isAssigned = needsFilling(change.new, parts.node);
    if (!isAssigned || change.new.metadata.deletionTimestamp !== undefined) running.cancel(name);
    if (isAssigned) queue.add(name);
  });
  return {
    idle: () => queue.idle(),
    async stop() {
      unsubscribe();
      await queue.shutdown();
    },
  };
}

async function fill(name: string, running: CancellableWork, parts: FillParts): Promise<void> {
  const { persistentVolumes, volumes, signal } = parts;
  const volume = persistentVolumes.get(name);
  if (!needsFilling(volume, parts.node)) return;
  if (volume.metadata.deletionTimestamp === undefined) {
    const outcome = await running.run(name, signal, (workSignal) => volumes.fill(volume, { signal: workSignal }));
    // The deletion has queued the volume again.
    if (outcome === 'cancelled') return;
  }
  await removeNodeFinalizer(PERSISTENT_VOLUMES, persistentVolumes.get(name) ?? volume, VOLUME_COPY_FINALIZER, parts);
}

function needsFilling<T extends PersistentVolume>(volume: T | undefined, node: string): volume is T {
  return (
    volume?.spec.csi?.driver === LOCAL_DRIVER &&
    volume.metadata.annotations?.[COPY_NODE_ANNOTATION] === node &&
    (volume.metadata.finalizers ?? []).includes(VOLUME_COPY_FINALIZER)
  );
}

/**
 * Removes Events that have not been written for an hour (flag `--event-ttl`), like kube-apiserver. As with the leases of etcd,
 * an Event expires in the store itself: neither admission nor finalizers keep it, and watches see a deletion.
 *
 * One map has the time of the last write of each Event, oldest first, so that a check reads only what has expired.
 */
import { decodeStored, encodeStored } from '#engine/encoding/stored-object.ts';
import { RevisionConflictError, type Entry, type Store } from '#engine/store/store.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

interface EventExpiryOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly ttlMs: number;
}

export const DEFAULT_EVENT_TTL_MS = 3_600_000;
const COLLECTION = 'events';
const MAX_CHECK_MS = 30_000;
/** The deletions in flight at a time: a fraction of what the store accepts. */
const BATCH = 256;

interface LastWrite {
  readonly revision: number;
  /** In the time of `clock.elapsed`. */
  readonly at: number;
}

/** Returns a function that ends the expiry. */
export function startEventExpiry({ store, clock, log, ttlMs }: EventExpiryOptions): () => void {
  const writes = new Map<string, LastWrite>();
  const [now, elapsed] = [clock.now(), clock.elapsed()];
  const { entries, revision } = store.list(COLLECTION);
  const loaded = entries.map((entry) => ({ entry, at: elapsed - Math.max(0, now - lastWriteTime(entry, now)) }));
  for (const { entry, at } of loaded.sort((a, b) => a.at - b.at))
    writes.set(entry.id, { revision: entry.revision, at });
  const endWatch = store.watch({ collection: COLLECTION, since: revision }, (events) => {
    const at = clock.elapsed();
    for (const { type, entry } of events) {
      // Removed first, so that the map stays in the order of writes.
      writes.delete(entry.id);
      if (type === 'put') writes.set(entry.id, { revision: entry.revision, at });
    }
  });

  let stopped = false;
  let cancel = () => {};
  const check = async (): Promise<void> => {
    for (let batch = expiredIds(writes, clock.elapsed() - ttlMs); batch.length > 0 && !stopped;) {
      await Promise.all(batch.map(([id, { revision }]) => expire(store, id, revision)));
      // A full batch may have left more.
      batch = batch.length < BATCH ? [] : expiredIds(writes, clock.elapsed() - ttlMs);
    }
  };
  const schedule = (): void => {
    cancel = clock.after(Math.min(ttlMs, MAX_CHECK_MS), () => {
      check()
        .catch((err: unknown) => log.warn({ err }, 'Cannot remove expired Events; trying again'))
        .finally(() => stopped || schedule());
    });
  };
  schedule();
  return () => {
    stopped = true;
    cancel();
    endWatch();
  };
}

function expiredIds(writes: ReadonlyMap<string, LastWrite>, before: number): [string, LastWrite][] {
  const expired: [string, LastWrite][] = [];
  for (const [id, write] of writes) {
    if (write.at > before || expired.length === BATCH) break;
    expired.push([id, write]);
  }
  return expired;
}

async function expire(store: Store, id: string, revision: number): Promise<void> {
  const entry = store.latest(COLLECTION, id);
  if (entry?.revision !== revision) return;
  const encode = (next: number) => encodeStored(decodeStored(entry.bytes), next);
  try {
    await store.delete({ collection: COLLECTION, id, expected: revision, encode });
  } catch (error) {
    // Written or deleted by a client at the same moment.
    if (!(error instanceof RevisionConflictError)) throw error;
  }
}

/** Returns the time of the last write of an Event of an earlier run, from the fields that only the server sets. */
function lastWriteTime({ bytes }: Entry, now: number): number {
  const { creationTimestamp, managedFields = [] } = decodeStored(bytes).metadata as KubeObject['metadata'] & {
    readonly managedFields?: readonly { readonly time?: string }[];
  };
  const times = [creationTimestamp, ...managedFields.map(({ time }) => time)].map((time) => Date.parse(time ?? ''));
  const known = times.filter((time) => !Number.isNaN(time));
  return known.length === 0 ? now : Math.max(...known);
}

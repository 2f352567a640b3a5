/**
 * Crash points: a scenario runs once to its end. It then runs again for every n: its process is
 * cut after the n-th write and started again on what the store contains. The invariants must hold each time.
 *
 * The cut happens inside the test process: after it, no write of the scenario's process ever returns; then that process
 * is stopped. Writes that the store had accepted before are durable; nothing else is.
 */
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import type { Entry, StoreListing, ListRange, Store, WatchListener, WatchRange, Write } from '#engine/store/store.ts';
import { systemClock, type Clock } from '#lib/clock.ts';

/** A store that accepts a limited number of writes. */
export class CuttingStore implements Store {
  readonly #store: Store;
  readonly #uncounted: ReadonlySet<string>;
  #writes = 0;
  #left = Infinity;
  #isCut = false;
  readonly #cut = Promise.withResolvers<'cut'>();

  /** `uncounted`: collections whose writes are not counted; they are accepted until the cut. */
  constructor(store: Store, { uncounted = [] }: { readonly uncounted?: readonly string[] } = {}) {
    this.#store = store;
    this.#uncounted = new Set(uncounted);
  }

  /** The number of writes that it has accepted. */
  get writes(): number {
    return this.#writes;
  }

  /** Accepts this many further writes. The one after them never returns; the promise resolves when it arrives. */
  cutAfter(writes: number): Promise<'cut'> {
    this.#left = writes;
    return this.#cut.promise;
  }

  get revision(): number {
    return this.#store.revision;
  }

  get compactedRevision(): number {
    return this.#store.compactedRevision;
  }

  get fault(): Error | undefined {
    return this.#store.fault;
  }

  get(collection: string, id: string): Entry | undefined {
    return this.#store.get(collection, id);
  }

  latest(collection: string, id: string): Entry | undefined {
    return this.#store.latest(collection, id);
  }

  list(collection: string, range?: ListRange): StoreListing {
    return this.#store.list(collection, range);
  }

  listLatest(collection: string, prefix: string): readonly Entry[] {
    return this.#store.listLatest(collection, prefix);
  }

  count(collection: string): number {
    return this.#store.count(collection);
  }

  put(write: Write): Promise<Entry> {
    return this.#take(write, (store) => store.put(write));
  }

  delete(write: Write): Promise<Entry> {
    return this.#take(write, (store) => store.delete(write));
  }

  watch(range: WatchRange, listener: WatchListener): () => void {
    return this.#store.watch(range, listener);
  }

  reached(revision: number, options: { signal: AbortSignal }): Promise<boolean> {
    return this.#store.reached(revision, options);
  }

  settled(entry: Entry): Promise<boolean> {
    return this.#store.settled(entry);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #take({ collection, id, expected }: Write, send: (store: Store) => Promise<Entry>): Promise<Entry> {
    // A write that the store refuses does not count.
    if ((this.#store.latest(collection, id)?.revision ?? 0) !== expected) return send(this.#store);
    const isUncounted = this.#uncounted.has(collection);
    // A store that has accepted its last write but receives no more is not cut: nothing would restart its process.
    if (this.#left <= 0 && !isUncounted) this.#isCut = true;
    if (this.#isCut) {
      this.#cut.resolve('cut');
      return new Promise(() => {});
    }
    if (isUncounted) return send(this.#store);
    this.#left--;
    this.#writes++;
    return send(this.#store);
  }
}

export interface CrashScenario<P> {
  /** Starts the process on a store: first an empty one, after a crash the one that the crash left. */
  start(store: Store): Promise<P>;
  /** Creates what the scenario needs. Not cut. */
  prepare(process: P): Promise<void>;
  /** Sends the client's request. Can be cut; it is sent again after the restart if it was not answered. */
  act(process: P): Promise<void>;
  /**
   * Resolves when all work is complete and no write is outstanding. Can be cut; it is called again after the restart.
   */
  complete(process: P): Promise<void>;
  /** Throws if the final state is wrong. */
  verify(process: P): Promise<void>;
  /** Stops the process. It must also end if writes never return. */
  stop(process: P): Promise<void>;
}

/** More writes than any scenario needs; a scenario that reaches it writes for ever. */
const MAX_POINTS = 1000;

/** Runs the scenario for each crash point and returns the number of crash points. */
export async function forEachCrashPoint<P>(scenario: CrashScenario<P>): Promise<number> {
  for (let n = 0; n <= MAX_POINTS; n++) {
    let outcome: 'cut' | 'done';
    try {
      outcome = await runWithCut(scenario, n);
    } catch (error) {
      throw new Error(`Cut after write ${n}: ${(error as Error).message}`, { cause: error });
    }
    // A run without a cut is the complete one: its number of writes is the number of crash points.
    if (outcome === 'done') return n;
  }
  throw new Error(`The scenario has not ended within ${MAX_POINTS} writes`);
}

async function runWithCut<P>(scenario: CrashScenario<P>, n: number): Promise<'cut' | 'done'> {
  const journal = new MemoryJournal();
  const store = new CuttingStore(await LogStore.open(journal));
  const process = await scenario.start(store);
  await scenario.prepare(process);
  let isAnswered = false;
  const cut = store.cutAfter(n);
  const runToEnd = async (): Promise<'done'> => {
    await scenario.act(process);
    isAnswered = true;
    await scenario.complete(process);
    return 'done';
  };
  const running = runToEnd();
  // After the cut the run hangs or fails, as expected.
  running.catch(() => {});
  const outcome = await Promise.race([running, cut]);
  if (outcome === 'done') {
    void store.cutAfter(Infinity);
    await scenario.verify(process);
  }
  await scenario.stop(process);
  await store.close();
  if (outcome === 'cut') await restart(scenario, journal, isAnswered);
  return outcome;
}

async function restart<P>(scenario: CrashScenario<P>, journal: MemoryJournal, isAnswered: boolean): Promise<void> {
  const store = await LogStore.open(journal);
  const process = await scenario.start(store);
  if (!isAnswered) await scenario.act(process);
  await scenario.complete(process);
  await scenario.verify(process);
  await scenario.stop(process);
  await store.close();
}

/** A clock that runs `factor` times as fast, for controllers that re-check after a delay. */
export function fastClock(factor: number): Clock {
  const start = systemClock.now();
  return {
    now: () => start + (systemClock.now() - start) * factor,
    elapsed: () => systemClock.elapsed() * factor,
    after: (ms, fn) => systemClock.after(ms / factor, fn),
  };
}

/** Resolves when the condition holds. Checks it now and after each write to these collections. */
export async function awaitStored(
  store: Pick<Store, 'watch' | 'revision'>,
  collections: readonly string[],
  holds: () => boolean,
): Promise<void> {
  if (holds()) return;
  await new Promise<void>((resolve) => {
    const ends = collections.map((collection) =>
      store.watch({ collection, since: store.revision }, () => {
        if (!holds()) return;
        for (const end of ends) end();
        resolve();
      }),
    );
  });
}

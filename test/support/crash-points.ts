/**
 * Crash points (design.md, section 7): a scenario runs once to the end; then again for every n, and its process is cut
 * after the n-th write and started again on what is left in the store. The invariants must hold each time.
 *
 * The process is cut inside of this one: from the cut on no write of it ever returns, and then it is stopped. What the
 * store had taken by then is durable; nothing else is.
 */
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/memory/memory-journal.ts';
import type { Entry, Listing, ListRange, Store, WatchListener, WatchRange, Write } from '#engine/store/store.ts';
import { systemClock, type Clock } from '#lib/clock.ts';

/** A store that takes so many writes and no more. */
export class CuttingStore implements Store {
  readonly #store: Store;
  readonly #free: ReadonlySet<string>;
  #writes = 0;
  #left = Infinity;
  #isCut = false;
  readonly #cut = Promise.withResolvers<'cut'>();

  /** `free`: collections whose writes are not counted, up to the cut. */
  constructor(store: Store, { free = [] }: { readonly free?: readonly string[] } = {}) {
    this.#store = store;
    this.#free = new Set(free);
  }

  /** How many writes it has taken. */
  get writes(): number {
    return this.#writes;
  }

  /** From now on it takes that many; the next one never returns. Resolves when that next one comes. */
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

  list(collection: string, range?: ListRange): Listing {
    return this.#store.list(collection, range);
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
    // What the store refuses is no write.
    if ((this.#store.latest(collection, id)?.revision ?? 0) !== expected) return send(this.#store);
    const isFree = this.#free.has(collection);
    // One that has taken its last write and is asked for no more is not cut: nobody would start it again.
    if (this.#left <= 0 && !isFree) this.#isCut = true;
    if (this.#isCut) {
      this.#cut.resolve('cut');
      return new Promise(() => {});
    }
    if (isFree) return send(this.#store);
    this.#left--;
    this.#writes++;
    return send(this.#store);
  }
}

export interface CrashScenario<P> {
  /** Starts the process on a store: at first an empty one, later what a crash has left. */
  start(store: Store): Promise<P>;
  /** Makes what the scenario needs. Not cut. */
  prepare(process: P): Promise<void>;
  /** What a client asks for. Cut; and asked again after the restart where no answer came. */
  act(process: P): Promise<void>;
  /** Resolves when everything has come to its end, with no write outstanding. Cut, and called again after the restart. */
  complete(process: P): Promise<void>;
  /** Throws where the end is not what it should be. */
  verify(process: P): Promise<void>;
  /** Must end also where writes never return. */
  stop(process: P): Promise<void>;
}

/** More writes than any scenario has: past it, something writes for ever. */
const MAX_POINTS = 1000;

/** Returns how many points there were. */
export async function forEachCrashPoint<P>(scenario: CrashScenario<P>): Promise<number> {
  for (let n = 0; n <= MAX_POINTS; n++) {
    let outcome: 'cut' | 'done';
    try {
      outcome = await runUntil(scenario, n);
    } catch (error) {
      throw new Error(`Cut after write ${n}: ${(error as Error).message}`, { cause: error });
    }
    // A run that was not cut any more was the undisturbed one: its writes are all the points there are.
    if (outcome === 'done') return n;
  }
  throw new Error(`The scenario has not come to its end within ${MAX_POINTS} writes`);
}

async function runUntil<P>(scenario: CrashScenario<P>, n: number): Promise<'cut' | 'done'> {
  const journal = new MemoryJournal();
  const store = new CuttingStore(await LogStore.open(journal));
  const process = await scenario.start(store);
  await scenario.prepare(process);
  let answered = false;
  const cut = store.cutAfter(n);
  const run = async (): Promise<'done'> => {
    await scenario.act(process);
    answered = true;
    await scenario.complete(process);
    return 'done';
  };
  const running = run();
  // After the cut it hangs or fails, as it must.
  running.catch(() => {});
  const outcome = await Promise.race([running, cut]);
  if (outcome === 'done') {
    void store.cutAfter(Infinity);
    await scenario.verify(process);
  }
  await scenario.stop(process);
  await store.close();
  if (outcome === 'cut') await restart(scenario, journal, answered);
  return outcome;
}

async function restart<P>(scenario: CrashScenario<P>, journal: MemoryJournal, answered: boolean): Promise<void> {
  const store = await LogStore.open(journal);
  const process = await scenario.start(store);
  if (!answered) await scenario.act(process);
  await scenario.complete(process);
  await scenario.verify(process);
  await scenario.stop(process);
  await store.close();
}

/** Time that runs that many times as fast, for controllers that look again after a while. */
export function fastClock(factor: number): Clock {
  const start = systemClock.now();
  return {
    now: () => start + (systemClock.now() - start) * factor,
    elapsed: () => systemClock.elapsed() * factor,
    after: (ms, fn) => systemClock.after(ms / factor, fn),
  };
}

/** Resolves when the condition holds, looked at now and after each commit to these collections. */
export async function untilStored(
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

/**
 * Runs work that reports its cost: synchronously if it is cheap, otherwise in slices between which the event loop runs.
 * The cost of all requests in one turn counts together, so that many expensive requests delay others no longer than one.
 *
 * A slice ends with the first step (one expression) that reaches SLICE_UNITS, so a turn takes at most this and the units
 * of one expression.
 */

export type Units = number;

/** About the time of a few requests. */
const SLICE_UNITS = 200_000;
/** Overhead of a step, measured for an expression that returns a constant. */
const PIECE_UNITS = 20;

interface PendingWork {
  /** Continues the work. Returns true when it is finished and its promise is settled. */
  advance(): boolean;
}

/** Work that has not started, so that cheap requests do not wait for expensive ones; and work that has. */
const fresh: PendingWork[] = [];
const started: PendingWork[] = [];
/** Units spent in this turn of the event loop. */
let spent = 0;
let turns = 0;
let isArmed = false;

/** Runs indivisible work, in a turn of its own if it is large. */
export function* runIndivisible<T>(units: Units, work: () => T): Generator<Units, T> {
  yield units;
  const result = work();
  yield units;
  return result;
}

/** Throws, or rejects with, the error of the work. */
export function runInSlices<T>(work: Generator<Units, T>): T | Promise<T> {
  const isFresh = spent >= SLICE_UNITS;
  const step = isFresh ? undefined : advance(work);
  if (step?.done === true) return step.value;
  return new Promise<T>((resolve, reject) => {
    (isFresh ? fresh : started).push({ advance: () => finished(work, resolve, reject) });
    scheduleTurn();
  });
}

function finished<T>(work: Generator<Units, T>, resolve: (value: T) => void, reject: (error: unknown) => void) {
  try {
    const step = advance(work);
    if (step?.done === true) resolve(step.value);
    return step !== undefined;
  } catch (error) {
    reject(error);
    return true;
  }
}

/** Returns undefined if this turn has no units left. */
function advance<T>(work: Generator<Units, T>): IteratorReturnResult<T> | undefined {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step;
    spent += step.value + PIECE_UNITS;
    scheduleTurn();
    if (spent >= SLICE_UNITS) return undefined;
  }
}

function scheduleTurn(): void {
  if (isArmed) return;
  isArmed = true;
  setImmediate(turn);
}

/** Alternates between new and started work, so that neither waits forever. */
function turn(): void {
  isArmed = false;
  spent = 0;
  turns += 1;
  const lines = turns % 2 === 0 ? [fresh, started] : [started, fresh];
  for (const line of lines) {
    // Work that is put back waits for the next turn, even if units are left.
    for (let count = line.length; count > 0 && spent < SLICE_UNITS; count -= 1) {
      const next = line.shift()!;
      if (!next.advance()) started.push(next);
    }
  }
  if (fresh.length + started.length > 0) scheduleTurn();
}

/**
 * Runs work that tells what it spends: at once where it is cheap, otherwise in slices between which the event loop
 * turns. What all requests spend in one turn counts together: many dear ones at the same time hold nobody up longer
 * than one of them does.
 *
 * A slice ends with the first piece of work (one expression) that reaches SLICE_UNITS: so a turn takes at most these
 * and the units of one expression.
 */

export type Units = number;

/** About the time of a few requests. */
const SLICE_UNITS = 200_000;
/** What a piece takes beside what it spends: measured for an expression that gives a constant. */
const PIECE_UNITS = 20;

interface Waiting {
  /** Goes on; true = it is finished and whoever waits was told. */
  advance(): boolean;
}

/** Work that was not begun yet, so that cheap requests do not stand in line behind dear ones; and work that was. */
const fresh: Waiting[] = [];
const begun: Waiting[] = [];
/** In this turn of the event loop. */
let spent = 0;
let turns = 0;
let isArmed = false;

/** Work that cannot be cut: in a turn of its own if it is large. */
export function* uncut<T>(units: Units, work: () => T): Generator<Units, T> {
  yield units;
  const result = work();
  yield units;
  return result;
}

/** Throws, or rejects with, what the work throws. */
export function inSlices<T>(work: Generator<Units, T>): T | Promise<T> {
  const isFresh = spent >= SLICE_UNITS;
  const step = isFresh ? undefined : advance(work);
  if (step?.done === true) return step.value;
  return new Promise<T>((resolve, reject) => {
    (isFresh ? fresh : begun).push({ advance: () => finished(work, resolve, reject) });
    arm();
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

/** undefined = this turn has no more units to spend. */
function advance<T>(work: Generator<Units, T>): IteratorReturnResult<T> | undefined {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step;
    spent += step.value + PIECE_UNITS;
    arm();
    if (spent >= SLICE_UNITS) return undefined;
  }
}

function arm(): void {
  if (isArmed) return;
  isArmed = true;
  setImmediate(turn);
}

/** Both kinds come first in turns, so that neither waits for ever. */
function turn(): void {
  isArmed = false;
  spent = 0;
  turns += 1;
  const lines = turns % 2 === 0 ? [fresh, begun] : [begun, fresh];
  for (const line of lines) {
    // Work that is put back waits for another turn, even if there are units left.
    for (let count = line.length; count > 0 && spent < SLICE_UNITS; count -= 1) {
      const next = line.shift()!;
      if (!next.advance()) begun.push(next);
    }
  }
  if (fresh.length + begun.length > 0) arm();
}

/** Runs work that tells what it spends: at once where it is cheap, in slices between which others get the process. */

export type Units = number;

/** About the time of a few requests. */
const SLICE_UNITS = 200_000;

export function inSlices<T>(work: Generator<Units, T>): T | Promise<T> {
  let spent = 0;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    spent += step.value;
    if (spent >= SLICE_UNITS) return later(work);
  }
}

async function later<T>(work: Generator<Units, T>): Promise<T> {
  await new Promise((resolve) => setImmediate(resolve));
  return inSlices(work);
}

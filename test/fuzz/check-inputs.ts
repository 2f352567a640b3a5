/**
 * Runs a property with random inputs. Reports an input that throws or blocks the event loop, reduced to a small one, with
 * the seed. Ordinary runs use a fixed seed; SELFSAME_TEST_SEED repeats a full run.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { isStall, longestTurn, stallsEachTime } from '#test/fuzz/stalls.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

const FIXED_SEED = 2027;
/** Full runs have this many times the inputs of an ordinary run. */
const FULL_FACTOR = 25;

interface Inputs<T> {
  /** The number of inputs in an ordinary run. */
  readonly runs: number;
  readonly values: fc.Arbitrary<T>;
  /** Values that are always among the inputs. */
  readonly always?: readonly NoInfer<T>[];
  /** The longest turn that is allowed. Programs of users may take longer than servers. */
  readonly maxTurnMs?: number;
}

/** Calls `use` with each input. It must settle, and may throw only for a defect. */
export async function checkInputs<T>(
  t: TestContext,
  { runs, values, always = [], maxTurnMs }: Inputs<T>,
  use: (value: T) => Promise<void>,
): Promise<void> {
  const given = process.env['SELFSAME_TEST_SEED'];
  const seed = given === undefined ? (FULL_RUN ? undefined : FIXED_SEED) : Number(given);
  let longest = 0;
  const property = fc.asyncProperty(values, async (value) => {
    const run = () => use(value);
    const { millis } = await longestTurn(run);
    longest = Math.max(longest, millis);
    if (!isStall(millis, maxTurnMs) || !(await stallsEachTime(run, maxTurnMs))) return;
    assert.fail(`it blocks the event loop for ${millis.toFixed(0)} ms`);
  });
  await fc.assert(property, {
    numRuns: FULL_RUN ? runs * FULL_FACTOR : runs,
    examples: always.map((value): [T] => [value]),
    ...(seed !== undefined && { seed }),
  });
  t.diagnostic(`the longest turn took ${longest.toFixed(1)} ms`);
}

/** Runs the work, and returns its error if it is of the expected type. Any other error is a defect. */
export async function expectedError<E extends Error>(
  types: readonly (abstract new (...args: never[]) => E)[],
  work: () => unknown,
): Promise<E | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    const found = types.find((type) => error instanceof type);
    assert.ok(found !== undefined, `unexpected error: ${error instanceof Error ? error.stack : inspect(error)}`);
    return error as E;
  }
}

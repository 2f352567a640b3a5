/**
 * How much one object may hold of expressions: they are compiled at one go, when it is written and when it takes
 * effect, and that must not hold the process. One expression by itself is bounded by MAX_SOURCE_LENGTH.
 */
import { CheckAllowance } from '#cel/check/allowance.ts';

export const MAX_EXPRESSIONS = 256;
export const MAX_TOTAL_LENGTH = 15_000;
/** In what one expression may take. */
const CHECK_TIMES = 2;

/** What compiling takes, in the units of an evaluation: measured. */
const COMPILE_UNITS_PER_CHARACTER = 50;

export function compileUnits(sources: readonly string[]): number {
  return COMPILE_UNITS_PER_CHARACTER * sources.reduce((sum, source) => sum + source.length, 0);
}

/** For all expressions of one object. */
export function sharedAllowance(): CheckAllowance {
  return new CheckAllowance(CHECK_TIMES);
}

/** Why there are too many of them or too long ones; undefined = there are not. */
export function sourcesFault(sources: readonly string[], what: 'policy' | 'configuration'): string | undefined {
  if (sources.length > MAX_EXPRESSIONS) {
    return `has ${sources.length} expressions; expected at most ${MAX_EXPRESSIONS}: split the ${what} into several`;
  }
  const length = sources.reduce((sum, source) => sum + source.length, 0);
  if (length <= MAX_TOTAL_LENGTH) return undefined;
  const most = `expected at most ${MAX_TOTAL_LENGTH}`;
  return `has expressions of ${length} characters altogether; ${most}: split the ${what} into several`;
}

/**
 * Limits on the expressions of one object: they are compiled synchronously, when the object is written and when it
 * takes effect, which must not block the process. MAX_SOURCE_LENGTH bounds a single expression.
 */
import { CheckBudget } from '#cel/limits/check-budget.ts';

export const MAX_EXPRESSIONS = 256;
export const MAX_TOTAL_LENGTH = 15_000;
/** In multiples of the budget for one expression. */
const CHECK_TIMES = 2;

/** Cost of compiling in evaluation units, measured. */
const COMPILE_UNITS_PER_CHARACTER = 50;

export function compileUnits(sources: readonly string[]): number {
  return COMPILE_UNITS_PER_CHARACTER * sources.reduce((sum, source) => sum + source.length, 0);
}

/** Returns the type-checking budget for all expressions of one object. */
export function createCheckBudget(): CheckBudget {
  return new CheckBudget(CHECK_TIMES);
}

/** Returns an error if there are too many or too long expressions. */
export function checkSourceLimits(sources: readonly string[], what: 'policy' | 'configuration'): string | undefined {
  if (sources.length > MAX_EXPRESSIONS) {
    return `has ${sources.length} expressions; expected at most ${MAX_EXPRESSIONS}; split the ${what} into several`;
  }
  const length = sources.reduce((sum, source) => sum + source.length, 0);
  if (length <= MAX_TOTAL_LENGTH) return undefined;
  const most = `expected at most ${MAX_TOTAL_LENGTH}`;
  return `has expressions of ${length} characters altogether; ${most}; split the ${what} into several`;
}

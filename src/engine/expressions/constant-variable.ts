/**
 * Computes variables that are the same for every request, such as the name of a label, only once, when the policy is
 * compiled. They still cost each request the same units, so that budgets do not change.
 */
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import type { Program } from '#cel/compile.ts';
import { CelFault, type CelValue } from '#cel/value.ts';

/** More expensive ones may cost less at their second evaluation (regular expressions do), and are not cached. */
const MAX_UNITS = 100;

export function precompute(program: Program): Program {
  const known = constantOf(program);
  if (known === undefined) return program;
  const { value, units } = known;
  return {
    ...program,
    evaluate: (_, budget) => {
      budget.charge(units);
      return value;
    },
  };
}

/** Returns undefined if the variable depends on the request or is not worth caching. */
function constantOf(program: Program): { readonly value: CelValue; readonly units: number } | undefined {
  let isAsked = false;
  const budget = new Budget(MAX_UNITS);
  try {
    const value = program.evaluate(() => {
      isAsked = true;
      return undefined;
    }, budget);
    if (isAsked || value instanceof CelFault || !isPlain(value)) return undefined;
    return { value, units: MAX_UNITS - budget.left };
  } catch (error) {
    if (error instanceof CostLimitError) return undefined;
    throw error;
  }
}

/** Lists and maps are created for each evaluation: some are modified in place. */
function isPlain(value: CelValue): boolean {
  return value === null || typeof value !== 'object';
}

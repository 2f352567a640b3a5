/**
 * A variable that is the same for every request, as a label's name is, is computed once: when its policy is compiled.
 * It costs requests as many units as before, so that nothing about their budgets depends on it.
 */
import { Budget, CostLimitError } from '#cel/budget.ts';
import type { Program } from '#cel/compile.ts';
import { CelFault, type CelValue } from '#cel/value.ts';

/** Dearer ones may pay less at their second evaluation (regular expressions do), and are left as they are. */
const MAX_UNITS = 100;

export function withoutRepeating(program: Program): Program {
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

/** undefined = it looks at the request, or is not worth it. */
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

/** Lists and maps are made anew for each evaluation: some grow in place. */
function isPlain(value: CelValue): boolean {
  return value === null || typeof value !== 'object';
}

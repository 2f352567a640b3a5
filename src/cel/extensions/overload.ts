/** Shorthand for declaring overloads. `work` receives the arguments with the types that the library declares. */
import type { Budget } from '#cel/limits/budget.ts';
import type { Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

type Work<A extends readonly CelValue[]> = (budget: Budget, ...args: A) => CelValue | CelFault;

/** Declares `receiver.f(rest)`; the receiver is the first of `args`. */
export function method<A extends readonly CelValue[]>(
  id: string,
  args: readonly CelType[],
  result: CelType,
  work: Work<A>,
): Overload {
  return { id, member: true, args, result, call: (values, budget) => work(budget, ...(values as A)) };
}

/** Declares `f(args)`. */
export function func<A extends readonly CelValue[]>(
  id: string,
  args: readonly CelType[],
  result: CelType,
  work: Work<A>,
): Overload {
  return { id, member: false, args, result, call: (values, budget) => work(budget, ...(values as A)) };
}

/**
 * Resolves the overloads that a call can refer to, and the type of its result. The values select the overload at run
 * time.
 */
import type { CelType } from '#cel/type.ts';
import { DYN } from '#cel/type.ts';
import type { Overload } from '#cel/library.ts';
import type { Unifier } from '#cel/check/unifier.ts';
import { isDyn } from '#cel/check/type-relations.ts';

/**
 * Returns the common result type of all matching overloads, dyn if they differ, or undefined if none matches. Adds the
 * matching overloads to `matching`.
 */
export function resolveOverload(
  unifier: Unifier,
  overloads: readonly Overload[],
  args: readonly CelType[],
  member: boolean,
  matching?: Overload[],
): CelType | undefined {
  let found: CelType | undefined;
  for (const overload of overloads) {
    if (overload.member !== member || overload.args.length !== args.length) continue;
    if (args.some((arg, i) => cannotMatch(arg, overload.args[i]!))) continue;
    const fresh = new Map<string, CelType>();
    const paramTypes = overload.args.map((arg) => unifier.instantiate(arg, fresh));
    if (!unifier.areAssignable(args, paramTypes)) continue;
    matching?.push(overload);
    const result = unifier.resolve(unifier.instantiate(overload.result, fresh));
    if (found === undefined) found = result;
    else if (!isDyn(found) && !unifier.isSameType(result, found)) found = DYN;
  }
  return found;
}

/** Reports whether these are two different primitive types. A fast path: it excludes most overloads of an operator. */
function cannotMatch(arg: CelType, paramType: CelType): boolean {
  if (arg.kind !== 'primitive' || paramType.kind !== 'primitive' || arg.name === paramType.name) return false;
  return !isDyn(arg) && !isDyn(paramType) && arg.name !== 'null_type' && paramType.name !== 'null_type';
}

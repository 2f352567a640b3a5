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
    if (args.some((arg, i) => cannotFit(arg, overload.args[i]!))) continue;
    const fresh = new Map<string, CelType>();
    const wanted = overload.args.map((arg) => unifier.instantiate(arg, fresh));
    if (!unifier.allFit(args, wanted)) continue;
    matching?.push(overload);
    const result = unifier.resolve(unifier.instantiate(overload.result, fresh));
    if (found === undefined) found = result;
    else if (!isDyn(found) && !unifier.same(result, found)) found = DYN;
  }
  return found;
}

/** Reports whether these are two different primitive types. A fast path: it excludes most overloads of an operator. */
function cannotFit(arg: CelType, wanted: CelType): boolean {
  if (arg.kind !== 'primitive' || wanted.kind !== 'primitive' || arg.name === wanted.name) return false;
  return !isDyn(arg) && !isDyn(wanted) && arg.name !== 'null_type' && wanted.name !== 'null_type';
}

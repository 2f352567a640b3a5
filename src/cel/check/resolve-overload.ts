/** Which overloads of a function a call may mean, and what it gives. Which one it is, the values tell at run time. */
import type { CelType } from '#cel/type.ts';
import { DYN } from '#cel/type.ts';
import type { Overload } from '#cel/library.ts';
import type { Unifier } from '#cel/check/unifier.ts';
import { isDyn } from '#cel/check/type-relations.ts';

/** The common result of all that match, or dyn. undefined = none matches. Those that do are put into `matching`. */
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

/** Two plain types with different names: most overloads of an operator are out at once. */
function cannotFit(arg: CelType, wanted: CelType): boolean {
  if (arg.kind !== 'primitive' || wanted.kind !== 'primitive' || arg.name === wanted.name) return false;
  return !isDyn(arg) && !isDyn(wanted) && arg.name !== 'null_type' && wanted.name !== 'null_type';
}

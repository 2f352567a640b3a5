/** Kubernetes' `find` and `findAll`. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { prepareRegex, compileRegex } from '#cel/evaluate/regex/regex.ts';
import type { Regex } from '#cel/evaluate/regex/regex-search.ts';
import type { Library, Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';
import { INT, STRING, listOf } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault } from '#cel/value.ts';

const STRINGS = listOf(STRING);

/** The implementation of a function for a compiled pattern. */
type Search = (budget: Budget, regex: Regex, text: string, limit: bigint | undefined) => CelValue;

const find: Search = (budget, regex, text) => matches(budget, text, regex, 1)[0] ?? '';

/** Returns at most `limit` matches; all if negative. */
const findAll: Search = (budget, regex, text, limit = -1n) =>
  new ArrayList(matches(budget, text, regex, limit < 0n ? Infinity : Number(limit)));

export const regexLibrary: Library = {
  functions: {
    find: [searchOverload('string_find_string', [STRING, STRING], STRING, find)],
    findAll: [
      searchOverload('string_find_all_string', [STRING, STRING], STRINGS, findAll),
      searchOverload('string_find_all_string_int', [STRING, STRING, INT], STRINGS, findAll),
    ],
  },
};

function searchOverload(id: string, args: readonly CelType[], result: CelType, search: Search): Overload {
  const run = (regex: Regex | CelFault, budget: Budget, [text, , limit]: readonly CelValue[]) => {
    if (regex instanceof CelFault) return new CelFault(`Illegal regex: ${regex.message}`);
    return search(budget, regex, text as string, limit as bigint | undefined);
  };
  return {
    id,
    member: true,
    args,
    result,
    call: (values, budget) => run(compileRegex(values[1] as string, budget), budget, values),
    prepare: ([, pattern]) => {
      if (typeof pattern !== 'string') return undefined;
      const regex = prepareRegex(pattern);
      return (values, budget) => run(regex(budget), budget, values);
    },
  };
}

/** A match may have to read the rest of the text to find its end, so each match is charged for the rest. */
function matches(budget: Budget, text: string, regex: Regex, most: number): string[] {
  const matcher = regex.matcher(text);
  const found: string[] = [];
  let last = 0;
  while (found.length < most) {
    budget.charge(regex.findCost(text.length - last));
    if (!matcher.find()) break;
    const start = matcher.start();
    const end = matcher.end();
    // Go skips an empty match directly after another match.
    if (start === end && start === last && found.length > 0) continue;
    budget.charge(1 + bytesCost(end - start));
    found.push(text.slice(start, end));
    last = end;
  }
  return found;
}

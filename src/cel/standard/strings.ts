/** The functions size, contains, startsWith, endsWith and matches. */
import { bytesCost, keysCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { codePointCount } from '#cel/evaluate/text/code-points.ts';
import { prepareRegex, compileRegex } from '#cel/evaluate/regex/regex.ts';
import type { Regex } from '#cel/evaluate/regex/regex-search.ts';
import { searchCost } from '#cel/evaluate/text/search-cost.ts';
import type { Overload } from '#cel/library.ts';
import { BOOL, BYTES, INT, STRING, listOf, mapOf, param } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import type { CelList, CelMap } from '#cel/value.ts';

const sizeOfString: Overload['call'] = ([text], budget) => {
  budget.charge(bytesCost((text as string).length * 2));
  return BigInt(codePointCount(text as string));
};
const sizeOfBytes: Overload['call'] = ([bytes]) => BigInt((bytes as Uint8Array).length);
const sizeOfList: Overload['call'] = ([list]) => BigInt((list as CelList).size);
/** Charges for the keys: a map from JSON collects them on first use. */
const sizeOfMap: Overload['call'] = ([map], budget) => {
  const { size } = map as CelMap;
  budget.charge(keysCost(size));
  return BigInt(size);
};

const MAP = mapOf(param('A'), param('B'));
const LIST = listOf(param('A'));

function size(global: string, member: string, type: CelType, call: Overload['call']): Overload[] {
  return [
    { id: global, member: false, args: [type], result: INT, call },
    { id: member, member: true, args: [type], result: INT, call },
  ];
}

function test(
  id: string,
  cost: (text: string, part: string) => number,
  holds: (text: string, part: string) => boolean,
): Overload {
  return {
    id,
    member: true,
    args: [STRING, STRING],
    result: BOOL,
    call: ([text, part], budget) => {
      budget.charge(cost(text as string, part as string));
      return holds(text as string, part as string);
    },
  };
}

function searched(regex: Regex | CelFault, text: string, budget: Budget): boolean | CelFault {
  return regex instanceof CelFault ? regex : regex.isFoundIn(text, budget);
}

function matches(id: string, member: boolean): Overload {
  return {
    id,
    member,
    args: [STRING, STRING],
    result: BOOL,
    call: ([text, pattern], budget) => searched(compileRegex(pattern as string, budget), text as string, budget),
    prepare: ([, pattern]) => {
      if (typeof pattern !== 'string') return undefined;
      const regex = prepareRegex(pattern);
      return ([text], budget) => searched(regex(budget), text as string, budget);
    },
  };
}

const partCost = (_text: string, part: string) => bytesCost(part.length);

export const strings: Readonly<Record<string, readonly Overload[]>> = {
  size: [
    ...size('size_bytes', 'bytes_size', BYTES, sizeOfBytes),
    ...size('size_list', 'list_size', LIST, sizeOfList),
    ...size('size_map', 'map_size', MAP, sizeOfMap),
    ...size('size_string', 'string_size', STRING, sizeOfString),
  ],
  contains: [test('contains_string', searchCost, (text, part) => text.includes(part))],
  endsWith: [test('ends_with_string', partCost, (text, part) => text.endsWith(part))],
  startsWith: [test('starts_with_string', partCost, (text, part) => text.startsWith(part))],
  matches: [matches('matches', false), matches('matches_string', true)],
};

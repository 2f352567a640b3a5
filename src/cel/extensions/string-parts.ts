/** The functions split, join and replace. Each charges for its result before it builds it. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { describeKey } from '#cel/evaluate/fault.ts';
import { codePointCount, nextUnit } from '#cel/evaluate/text/code-points.ts';
import { searchCost } from '#cel/evaluate/text/search-cost.ts';
import type { CelList } from '#cel/value.ts';
import { CelFault } from '#cel/value.ts';

/**
 * Returns at most `limit` parts, the last with the rest of the text; no limit if negative. An empty separator splits
 * between all code points.
 */
export function split(budget: Budget, text: string, separator: string, limit: bigint): CelList {
  if (limit === 0n) return new ArrayList([]);
  budget.charge(searchCost(text, separator));
  const cuts = limit < 0n ? Infinity : Number(limit) - 1;
  const parts: string[] = [];
  let start = 0;
  let end = findCut(text, separator, start);
  while (parts.length < cuts && end >= 0) {
    budget.charge(1);
    parts.push(text.slice(start, end));
    start = end + separator.length;
    end = findCut(text, separator, start);
  }
  if (separator !== '' || text !== '') parts.push(text.slice(start));
  return new ArrayList(parts);
}

/**
 * Returns the position of the next separator. For an empty separator, returns the end of the code point, or -1 at the
 * last.
 */
function findCut(text: string, separator: string, start: number): number {
  if (separator !== '') return text.indexOf(separator, start);
  const end = nextUnit(text, start);
  return end < text.length ? end : -1;
}

export function join(budget: Budget, list: CelList, separator: string): string | CelFault {
  budget.charge(list.size);
  const parts: string[] = [];
  for (let i = 0; i < list.size; i++) {
    const part = list.at(i);
    if (typeof part !== 'string') return new CelFault(`join: invalid input: ${describeKey(part)}`);
    budget.charge(bytesCost(part.length + separator.length));
    parts.push(part);
  }
  return parts.join(separator);
}

/** Replaces at most `limit` times; no limit if negative. An empty `from` matches around each code point. */
export function replace(budget: Budget, text: string, from: string, to: string, limit: bigint): string {
  const times = limit < 0n ? Infinity : Number(limit);
  budget.charge(searchCost(text, from));
  const places = from === '' ? Math.min(times, codePointCount(text) + 1) : countUpTo(text, from, times);
  if (places === 0) return text;
  budget.charge(2 * places + bytesCost(text.length + places * to.length));

  const parts: string[] = [];
  let start = 0;
  for (let i = 0; i < places; i++) {
    const end = from === '' ? (i === 0 ? 0 : nextUnit(text, start)) : text.indexOf(from, start);
    parts.push(text.slice(start, end));
    start = end + from.length;
  }
  parts.push(text.slice(start));
  return parts.join(to);
}

function countUpTo(text: string, part: string, times: number): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0 && count < times; at = text.indexOf(part, at + part.length)) count++;
  return count;
}

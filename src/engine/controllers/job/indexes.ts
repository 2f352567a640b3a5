/**
 * Sets of completion indexes, as in a Job's status: `0,3-5,7`. Stored as sorted ranges that neither touch nor overlap, so
 * that 100,000 consecutive indexes cost as much as one. Pure.
 */

interface Range {
  readonly first: number;
  readonly last: number;
}

export type Indexes = readonly Range[];

/** Parses a set. Skips invalid parts and indexes that are not below `completions`. */
export function parseIndexes(text: string | undefined, completions: number): Indexes {
  const ranges: Range[] = [];
  for (const part of (text ?? '').split(',')) {
    const match = /^([0-9]{1,10})(?:-([0-9]{1,10}))?$/.exec(part);
    if (match === null) continue;
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? first), completions - 1);
    if (first <= last) ranges.push({ first, last });
  }
  return mergeRanges(ranges);
}

/** Renders a set. Two neighbours are written as `1,2`, more as `1-3`. */
export function formatIndexes(indexes: Indexes): string {
  const written = indexes.map(({ first, last }) => {
    if (first === last) return `${first}`;
    return `${first}${last === first + 1 ? ',' : '-'}${last}`;
  });
  return written.join(',');
}

export function indexesOf(numbers: Iterable<number>): Indexes {
  return mergeRanges([...numbers].map((index) => ({ first: index, last: index })));
}

export function unionOf(...sets: readonly Indexes[]): Indexes {
  return mergeRanges(sets.flat());
}

export function countIndexes(indexes: Indexes): number {
  return indexes.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

export function hasIndex(indexes: Indexes, index: number): boolean {
  return indexes.some(({ first, last }) => first <= index && index <= last);
}

export function countShared(a: Indexes, b: Indexes): number {
  return countIndexes(a) + countIndexes(b) - countIndexes(unionOf(a, b));
}

/** Returns the smallest indexes below `completions` that are not in the set, at most `count`. */
export function firstMissing(indexes: Indexes, completions: number, count: number): number[] {
  const missing: number[] = [];
  let candidate = 0;
  for (const { first, last } of [...indexes, { first: completions, last: completions }]) {
    for (; candidate < Math.min(first, completions) && missing.length < count; candidate++) missing.push(candidate);
    candidate = Math.max(candidate, last + 1);
  }
  return missing;
}

function mergeRanges(ranges: readonly Range[]): Indexes {
  const result: Range[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = result.at(-1);
    if (before === undefined || first > before.last + 1) result.push({ first, last });
    else if (last > before.last) result[result.length - 1] = { first: before.first, last };
  }
  return result;
}

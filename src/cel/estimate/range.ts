/** A range between a minimum and a maximum cost or size. Sums and products saturate at 64 bits. */

export interface Range {
  readonly min: number;
  readonly max: number;
}

export const MAX_COUNT = 2 ** 64;
export const ZERO: Range = { min: 0, max: 0 };
export const ONE: Range = { min: 1, max: 1 };
export const UNKNOWN_RANGE: Range = { min: 0, max: MAX_COUNT };

const cap = (value: number) => Math.min(value, MAX_COUNT);

export function exactRange(value: number): Range {
  return { min: value, max: value };
}

export function addRanges(...ranges: readonly Range[]): Range {
  let [min, max] = [0, 0];
  for (const range of ranges) {
    min += range.min;
    max += range.max;
  }
  return { min: cap(min), max: cap(max) };
}

export function multiplyRanges(a: Range, b: Range): Range {
  return { min: cap(a.min * b.min), max: cap(a.max * b.max) };
}

/** Rounds up, because costs are integers. */
export function scaleRange({ min, max }: Range, factor: number): Range {
  return { min: cap(Math.ceil(min * factor)), max: cap(Math.ceil(max * factor)) };
}

export function uniteRanges(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}

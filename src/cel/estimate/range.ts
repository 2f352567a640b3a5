/** A range between a minimum and a maximum cost or size. Sums and products saturate at 64 bits. */

export interface Range {
  readonly min: number;
  readonly max: number;
}

export const MOST = 2 ** 64;
export const NONE: Range = { min: 0, max: 0 };
export const ONE: Range = { min: 1, max: 1 };
export const UNKNOWN: Range = { min: 0, max: MOST };

const capped = (value: number) => Math.min(value, MOST);

export function exactly(value: number): Range {
  return { min: value, max: value };
}

export function plus(...ranges: readonly Range[]): Range {
  let [min, max] = [0, 0];
  for (const range of ranges) {
    min += range.min;
    max += range.max;
  }
  return { min: capped(min), max: capped(max) };
}

export function times(a: Range, b: Range): Range {
  return { min: capped(a.min * b.min), max: capped(a.max * b.max) };
}

/** Rounds up, because costs are integers. */
export function scaled({ min, max }: Range, factor: number): Range {
  return { min: capped(Math.ceil(min * factor)), max: capped(Math.ceil(max * factor)) };
}

export function spanning(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}

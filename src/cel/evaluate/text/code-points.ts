/**
 * Positions in strings. CEL counts code points, JavaScript counts UTF-16 units. For text without surrogates both are
 * the same; only other text is scanned.
 */

const SURROGATE = /[\ud800-\udfff]/;

export function hasSurrogates(text: string): boolean {
  return SURROGATE.test(text);
}

export function codePointCount(text: string): number {
  return hasSurrogates(text) ? pointsBefore(text, text.length) : text.length;
}

/**
 * Returns the UTF-16 offset of the code point with this index, text.length for the index after the last one, and
 * undefined beyond that.
 */
export function unitOffset(text: string, points: number): number | undefined {
  if (points < 0 || points > text.length) return undefined;
  if (!hasSurrogates(text)) return points;
  let unit = 0;
  for (let seen = 0; seen < points; seen++) {
    if (unit >= text.length) return undefined;
    unit = nextUnit(text, unit);
  }
  return unit;
}

/** Returns the index of the code point at this UTF-16 offset. */
export function pointIndex(text: string, unit: number): number {
  return hasSurrogates(text) ? pointsBefore(text, unit) : unit;
}

export function nextUnit(text: string, unit: number): number {
  return unit + ((text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1);
}

function pointsBefore(text: string, end: number): number {
  let points = 0;
  for (let unit = 0; unit < end; unit = nextUnit(text, unit)) points++;
  return points;
}

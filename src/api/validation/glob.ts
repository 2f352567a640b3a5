/**
 * Globs, as in Go's path.Match, which match the whole text; used for emulatedMachines and directLuns. Matching takes at
 * most quadratic time.
 */

type Piece =
  | { readonly type: 'star' }
  | { readonly type: 'any' }
  | { readonly type: 'one'; readonly char: string }
  | { readonly type: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [string, string])[] };

type Glob = readonly Piece[];

/** Returns undefined for a malformed glob. */
export function parseGlob(text: string): Glob | undefined {
  const pieces: Piece[] = [];
  const chars = [...text];
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at]!;
    if (char === '*') pieces.push({ type: 'star' });
    else if (char === '?') pieces.push({ type: 'any' });
    else if (char === '[') {
      const parsed = parseClass(chars, at + 1);
      if (parsed === undefined) return undefined;
      pieces.push(parsed.piece);
      at = parsed.end;
    } else if (char === '\\') {
      const escaped = chars[++at];
      if (escaped === undefined) return undefined;
      pieces.push({ type: 'one', char: escaped });
    } else pieces.push({ type: 'one', char });
  }
  return pieces;
}

/** Parses a class from the character after `[`; `end` is the index of `]`. */
function parseClass(chars: readonly string[], from: number): { piece: Piece; end: number } | undefined {
  let at = from;
  const negated = chars[at] === '^';
  if (negated) at++;
  const ranges: [string, string][] = [];
  while (chars[at] !== ']' || ranges.length === 0) {
    const low = classChar(chars, at);
    if (low === undefined) return undefined;
    at = low.next;
    if (chars[at] !== '-') {
      ranges.push([low.char, low.char]);
      continue;
    }
    const high = classChar(chars, at + 1);
    if (high === undefined) return undefined;
    ranges.push([low.char, high.char]);
    at = high.next;
  }
  return { piece: { type: 'class', negated, ranges }, end: at };
}

function classChar(chars: readonly string[], at: number): { char: string; next: number } | undefined {
  const escaped = chars[at] === '\\';
  const char = chars[escaped ? at + 1 : at];
  if (char === undefined || (!escaped && (char === '-' || char === ']'))) return undefined;
  return { char, next: at + (escaped ? 2 : 1) };
}

/** Backtracks only to the last star: an earlier one could not match more. */
export function matchesGlob(glob: Glob, text: string): boolean {
  const chars = [...text];
  let [piece, at] = [0, 0];
  let star: { piece: number; at: number } | undefined;
  while (at < chars.length) {
    const expected = glob[piece];
    if (expected?.type === 'star') star = { piece: ++piece, at };
    else if (expected !== undefined && matchesChar(expected, chars[at]!)) {
      piece++;
      at++;
    } else if (star !== undefined && chars[star.at] !== '/') {
      star = { piece: star.piece, at: star.at + 1 };
      ({ piece, at } = star);
    } else return false;
  }
  while (glob[piece]?.type === 'star') piece++;
  return piece === glob.length;
}

function matchesChar(piece: Exclude<Piece, { type: 'star' }>, char: string): boolean {
  if (piece.type === 'one') return piece.char === char;
  if (char === '/') return false;
  return piece.type === 'any' || piece.ranges.some(([low, high]) => low <= char && char <= high) !== piece.negated;
}

/** Reports whether one of the globs matches. A malformed glob matches nothing. */
export function matchesAny(globs: readonly string[], text: string): boolean {
  return globs.some((one) => {
    const glob = parseGlob(one);
    return glob !== undefined && matchesGlob(glob, text);
  });
}

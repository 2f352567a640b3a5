/** How large the program of a regular expression becomes, told before it is compiled: `(a{100}){10}` is 1000. */

/**
 * One piece that a repetition may stand behind: a literal block, an escape, a class or a bracket. Every part that may
 * fail at its end is bounded, so that this takes linear time itself.
 */
const PIECE =
  /\\Q[^]*?(?:\\E|$)|\\(?:[pP](?:\{[^}]{0,40}\}|.)|x\{[^}]{0,8}\}|x[0-9a-fA-F]{2}|[^])|\[\^?\]?(?:\[:\^?\w{1,10}:\]|\\[^]|[^\]\\])*\]?|\{(\d{1,5})(?:(,)(\d{0,5}))?\}|\(\?(?:P?<\w{0,64}>|[a-zA-Z-]{0,8}:)|[^]/gu;

/** Measured, in instructions that take as long to compile. */
const UNICODE_CLASS = 24;
const FOLDED_RANGE = 1000;

export interface RegexSize {
  /** About how many instructions. */
  readonly program: number;
  /** What its character classes take to build, which repetitions share. */
  readonly tables: number;
}

interface Group {
  total: number;
  /** Of the piece just before. */
  last: number;
}

export function estimateSize(pattern: string): RegexSize {
  const outer: Group = { total: 1, last: 0 };
  const stack: Group[] = [outer];
  const folds = /\(\?[a-zA-Z]*i/.test(pattern);
  let tables = 0;
  for (const [piece, least, comma, most] of pattern.matchAll(PIECE)) {
    const group = stack.at(-1) ?? outer;
    if (piece.startsWith('(')) {
      stack.push({ total: piece.endsWith(':') ? 0 : 2, last: 0 });
    } else if (piece === ')' && stack.length > 1) {
      stack.pop();
      addPiece(stack.at(-1) ?? outer, group.total);
    } else if (least !== undefined) {
      const always = Number(least) + (comma === undefined ? 0 : 1);
      // Each that may be left out is one instruction more.
      const times = Math.max(always, 1) + Math.max(Number(most ?? 0) - always, 0) * 2;
      group.total += group.last * (times - 1);
      group.last *= times;
    } else {
      addPiece(group, piece.startsWith('\\Q') ? piece.length : 1);
      tables += tableSize(piece, folds);
    }
  }
  return { program: stack.reduce((sum, { total }) => sum + total, 0), tables };
}

function addPiece(group: Group, size: number): void {
  group.total += size;
  group.last = size;
}

function tableSize(piece: string, folds: boolean): number {
  if (!/^[[\\]/.test(piece)) return 0;
  const unicode = UNICODE_CLASS * (piece.match(/\\[pP]/g)?.length ?? 0);
  // Without regard to case, every character of a range is looked up.
  const folded = folds && /^\[[^]*(?:\\x|[^\0-\x7f])/.test(piece) ? FOLDED_RANGE : 0;
  return unicode + folded + Math.ceil(piece.length / 2);
}

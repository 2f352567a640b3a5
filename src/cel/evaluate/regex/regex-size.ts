/** Estimates the program size of a regular expression before it is compiled: `(a{100}){10}` has 1000 instructions. */

/**
 * Matches one piece that can be repeated: a literal block, an escape, a class or a group start. All parts that can fail
 * at their end are bounded, so that matching takes linear time.
 */
const PIECE =
  /\\Q[^]*?(?:\\E|$)|\\(?:[pP](?:\{[^}]{0,40}\}|.)|x\{[^}]{0,8}\}|x[0-9a-fA-F]{2}|[^])|\[\^?\]?(?:\[:\^?\w{1,10}:\]|\\[^]|[^\]\\])*\]?|\{(\d{1,5})(?:(,)(\d{0,5}))?\}|\(\?(?:P?<\w{0,64}>|[a-zA-Z-]{0,8}:)|[^]/gu;

/** The measured cost of a Unicode class, in instructions that take as long to compile. */
const UNICODE_CLASS = 80;
/** Each use of a Unicode class adds its ranges to the search tables. */
const UNICODE_INSTRUCTION = 4;
/** A case-insensitive range looks up each of its characters, up to the last one that has a case. */
const CHARACTERS_PER_FOLD = 30;
const LAST_WITH_CASE = 0x1e943;
const RANGE = /(\\x\{[0-9a-fA-F]{1,6}\}|\\x[0-9a-fA-F]{2}|[^\\])-(\\x\{[0-9a-fA-F]{1,6}\}|\\x[0-9a-fA-F]{2}|[^\]\\])/gu;

interface RegexSize {
  /** Approximate number of instructions. */
  readonly program: number;
  /** Cost of building the character classes, which repetitions share. */
  readonly tables: number;
}

interface Group {
  total: number;
  /** The size of the previous piece. */
  last: number;
}

export function estimateRegexSize(pattern: string): RegexSize {
  const outer: Group = { total: 1, last: 0 };
  const stack: Group[] = [outer];
  const isCaseInsensitive = /\(\?[a-zA-Z]*i/.test(pattern);
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
      // Each optional repetition needs one more instruction.
      const times = Math.max(always, 1) + Math.max(Number(most ?? 0) - always, 0) * 2;
      group.total += group.last * (times - 1);
      group.last *= times;
    } else {
      addPiece(group, pieceSize(piece));
      tables += tableSize(piece, isCaseInsensitive);
    }
  }
  return { program: stack.reduce((sum, { total }) => sum + total, 0), tables };
}

function addPiece(group: Group, size: number): void {
  group.total += size;
  group.last = size;
}

function pieceSize(piece: string): number {
  if (piece.startsWith('\\Q')) return piece.length;
  return /\\[pP]/.test(piece) ? UNICODE_INSTRUCTION : 1;
}

function tableSize(piece: string, isCaseInsensitive: boolean): number {
  if (!/^[[\\]/.test(piece)) return 0;
  const unicode = UNICODE_CLASS * (piece.match(/\\[pP]/g)?.length ?? 0);
  return unicode + (isCaseInsensitive ? foldedSize(piece) : 0) + Math.ceil(piece.length / 2);
}

function foldedSize(piece: string): number {
  let characters = 0;
  for (const [, first = '', last = ''] of piece.matchAll(RANGE)) {
    characters += Math.max(0, Math.min(codeOf(last), LAST_WITH_CASE) - codeOf(first));
  }
  return Math.ceil(characters / CHARACTERS_PER_FOLD);
}

function codeOf(character: string): number {
  const hex = /^\\x\{?([0-9a-fA-F]+)/.exec(character)?.[1];
  return hex === undefined ? (character.codePointAt(0) ?? 0) : Number.parseInt(hex, 16);
}

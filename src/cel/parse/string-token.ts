/** Finds the end of a string token. literal.ts interprets the escapes. */

const ESCAPE = /\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y;
/** Matches the part of an invalid escape that still looks valid. */
const BROKEN_ESCAPE = /\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?/y;

interface StringEnd {
  /**
   * The offset after the closing quote; if the string is not closed, the offset of the character that cannot be part of
   * it.
   */
  readonly end: number;
  readonly closed: boolean;
}

/** `start` is the start of the string: optional b, optional r, and one quote. */
export function findStringEnd(source: string, at: number, start: string): StringEnd {
  const quote = start.at(-1) ?? '"';
  const raw = /r/i.test(start);
  const body = at + start.length;
  const triple = quote.repeat(3);
  if (source.startsWith(triple, body - 1)) {
    const end = scan(source, body + 2, triple, raw);
    // If the end is missing, the first two of three quotes are an empty string.
    return end.closed ? end : { end: body + 1, closed: true };
  }
  return scan(source, body, quote, raw);
}

function scan(source: string, from: number, close: string, raw: boolean): StringEnd {
  let at = from;
  while (at < source.length) {
    if (source.startsWith(close, at)) return { end: at + close.length, closed: true };
    const char = source[at];
    if (char === '\\' && !raw) {
      ESCAPE.lastIndex = at;
      const escape = ESCAPE.exec(source);
      if (escape === null) {
        BROKEN_ESCAPE.lastIndex = at;
        return { end: at + (BROKEN_ESCAPE.exec(source)?.[0].length ?? 1), closed: false };
      }
      at += escape[0].length;
      continue;
    }
    if (close.length === 1 && (char === '\n' || char === '\r')) return { end: at, closed: false };
    at += 1;
  }
  return { end: at, closed: false };
}

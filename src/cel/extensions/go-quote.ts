/** Quotes strings like Go's %q, for the messages of Kubernetes that use it. */

/** Escapes that have a name, and the escapes of the quote and the backslash. */
export const NAMED_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/**
 * Matches quotes, backslashes and invisible characters: controls, spaces other than U+0020, unassigned, private use.
 */
const HIDDEN = /["\\]|(?! )[\p{C}\p{Z}]/gu;

/** Matches most texts, much faster than HIDDEN. */
const PLAIN = /^[ !#-[\]-~]*$/;

export function goQuote(text: string): string {
  return `"${text.replaceAll(HIDDEN, escapeCharacter)}"`;
}

/** Reports whether goQuote would escape a character. */
export function needsEscape(text: string): boolean {
  return !PLAIN.test(text) && text.search(HIDDEN) >= 0;
}

const MAX_IN_MESSAGE = 256;

/** Quotes a text for a message. Truncates long texts. */
export function quoteForMessage(text: string): string {
  return goQuote(text.length > MAX_IN_MESSAGE ? `${text.slice(0, MAX_IN_MESSAGE)}...` : text);
}

/** Returns the units for quoting a text twice in a message. Each character may become an escape. */
export function quoteCost(text: string): number {
  return 4 * Math.min(text.length, MAX_IN_MESSAGE);
}

function escapeCharacter(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  const hex = code.toString(16);
  if (code < 0x80) return NAMED_ESCAPES.get(sign) ?? `\\x${hex.padStart(2, '0')}`;
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
}

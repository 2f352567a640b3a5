/** A string as Go's %q shows it, for messages that Kubernetes writes that way. */

/** The escapes with a letter, and those of what ends or begins one. */
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

/** Quotes, backslashes and whatever cannot be seen: controls, spaces but the plain one, unassigned, private. */
const HIDDEN = /["\\]|(?! )[\p{C}\p{Z}]/gu;

/** What most texts are made of; found out much faster. */
const PLAIN = /^[ !#-[\]-~]*$/;

export function goQuote(text: string): string {
  return `"${text.replaceAll(HIDDEN, escaped)}"`;
}

/** Whether goQuote has something to escape. */
export function hasHidden(text: string): boolean {
  return !PLAIN.test(text) && text.search(HIDDEN) >= 0;
}

const MAX_IN_MESSAGE = 256;

/** For messages: long texts are cut. */
export function quotedForMessage(text: string): string {
  return goQuote(text.length > MAX_IN_MESSAGE ? `${text.slice(0, MAX_IN_MESSAGE)}...` : text);
}

/** Units for quotedForMessage, which messages do twice: each character may become an escape. */
export function quoteCost(text: string): number {
  return 4 * Math.min(text.length, MAX_IN_MESSAGE);
}

function escaped(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  const hex = code.toString(16);
  if (code < 0x80) return NAMED_ESCAPES.get(sign) ?? `\\x${hex.padStart(2, '0')}`;
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
}

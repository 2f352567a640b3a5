/** Interprets the text of literal tokens. Returns undefined for literals that are out of range. */
import { CelUint } from '#cel/value.ts';

const MAX_INT = 2n ** 63n - 1n;
const MIN_INT = -(2n ** 63n);
const MAX_UINT = 2n ** 64n - 1n;

export function parseIntLiteral(text: string, negative: boolean): bigint | undefined {
  // BigInt takes quadratic time, and a 64-bit number has at most 20 digits.
  const digits = text.replace(/^(0x)?0+(?=[0-9a-fA-F])/, '$1');
  if (digits.length > 22) return undefined;
  const value = negative ? -BigInt(digits) : BigInt(digits);
  return value >= MIN_INT && value <= MAX_INT ? value : undefined;
}

export function parseUintLiteral(text: string): CelUint | undefined {
  const digits = text.slice(0, -1).replace(/^(0x)?0+(?=[0-9a-fA-F])/, '$1');
  if (digits.length > 22) return undefined;
  const value = BigInt(digits);
  return value <= MAX_UINT ? new CelUint(value) : undefined;
}

export function parseDoubleLiteral(text: string, negative: boolean): number | undefined {
  const value = Number(text);
  if (!Number.isFinite(value)) return undefined;
  return negative ? -value : value;
}

const ESCAPE = /\\(?:([abfnrtv"'\\?`])|([0-7]{3})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/g;
const SIMPLE: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Returns the text between the quotes. */
function stringContent(token: string): { readonly text: string; readonly raw: boolean } {
  const prefix = /^[bBrR]*/.exec(token)?.[0] ?? '';
  const quoted = token.slice(prefix.length).replaceAll(/\r\n?/g, '\n');
  const quotes = /^(?:"""|''')/.test(quoted) && quoted.length >= 6 ? 3 : 1;
  return { text: quoted.slice(quotes, -quotes), raw: /r/i.test(prefix) };
}

/** Returns the string, or the problem with the message of cel-go. */
export function parseStringLiteral(token: string): { readonly value: string } | { readonly problem: string } {
  const { text, raw } = stringContent(token);
  if (raw || !text.includes('\\')) return { value: text };
  let problem: string | undefined;
  const value = text.replaceAll(ESCAPE, (_all, simple?: string, octal?: string, ...hex: (string | undefined)[]) => {
    if (simple !== undefined) return SIMPLE[simple] ?? simple;
    const code = octal === undefined ? parseInt(hex[0] ?? hex[1] ?? hex[2] ?? '', 16) : parseInt(octal, 8);
    if (code > 0x10ffff) problem = 'unable to unescape string';
    else if (code >= 0xd800 && code <= 0xdfff) problem = 'invalid unicode code point';
    return problem === undefined ? String.fromCodePoint(code) : '';
  });
  return problem === undefined ? { value } : { problem };
}

const utf8 = new TextEncoder();

export function parseBytesLiteral(token: string): { readonly value: Uint8Array } | { readonly problem: string } {
  const { text, raw } = stringContent(token);
  if (raw || !text.includes('\\')) return { value: utf8.encode(text) };
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const escape of text.matchAll(ESCAPE)) {
    const [all, simple, octal, byte] = escape;
    parts.push(utf8.encode(text.slice(from, escape.index)));
    from = escape.index + all.length;
    if (simple !== undefined) parts.push(utf8.encode(SIMPLE[simple] ?? simple));
    else if (octal !== undefined) parts.push(Uint8Array.of(parseInt(octal, 8)));
    else if (byte !== undefined) parts.push(Uint8Array.of(parseInt(byte, 16)));
    else return { problem: 'unable to unescape string' };
  }
  parts.push(utf8.encode(text.slice(from)));
  return { value: new Uint8Array(Buffer.concat(parts)) };
}

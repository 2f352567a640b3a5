/** Percent-encoding as in Go's net/url. The allowed characters depend on the part of the URL. */
import { quoteForMessage } from '#cel/extensions/go-quote.ts';

type UrlPart = 'path' | 'host' | 'zone' | 'user' | 'query';

/** An invalid URL, with the message of Go. */
export class UrlError extends Error {
  override name = 'UrlError';
}

const ALLOWED_UNESCAPED: Record<UrlPart, string> = {
  path: '$&+,/:;=@',
  host: '!$&\'()*+,;=:[]<>"',
  zone: '!$&\'()*+,;=:[]<>"',
  user: '$&+,;=',
  query: '',
};

const tables = Object.fromEntries(
  Object.entries(ALLOWED_UNESCAPED).map(([part, signs]) => {
    const bare = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~${signs}`;
    return [part, Uint8Array.from({ length: 256 }, (_, code) => (bare.includes(String.fromCharCode(code)) ? 1 : 0))];
  }),
) as Record<UrlPart, Uint8Array>;

function isAllowedUnescaped(code: number, part: UrlPart): boolean {
  return tables[part][code] === 1;
}

/** Throws UrlError if the text has invalid escapes, or characters that a host cannot have. */
export function checkEscapes(text: string, part: UrlPart): void {
  const isHost = part === 'host' || part === 'zone';
  if (!isHost && !text.includes('%')) return;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x25) {
      const escaped = hexValue(text.charCodeAt(i + 1)) * 16 + hexValue(text.charCodeAt(i + 2));
      if (!isEscapeAllowed(escaped, part)) {
        throw new UrlError(`invalid URL escape ${quoteForMessage(text.slice(i, i + 3))}`);
      }
      i += 2;
    } else if (isHost && code < 0x80 && !isAllowedUnescaped(code, part)) {
      throw new UrlError(`invalid character ${quoteForMessage(text.charAt(i))} in host name`);
    }
  }
}

/** Returns NaN if the character is not a hexadecimal digit. */
function hexValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : NaN;
}

/** In hosts, only non-ASCII characters can be escaped, except for the percent sign of a zone. */
function isEscapeAllowed(code: number, part: UrlPart): boolean {
  if (Number.isNaN(code)) return false;
  if (code === 0x25) return true;
  if (part === 'host') return code >= 0x80;
  if (part === 'zone') return code === 0x20 || isAllowedUnescaped(code, 'host');
  return true;
}

const utf8 = new TextEncoder();
const decoder = new TextDecoder();

/** The caller must call checkEscapes first. In queries, a plus is a space. */
export function unescapeUrl(text: string, part: UrlPart): string {
  const plain = part === 'query' ? text.replaceAll('+', ' ') : text;
  return plain.includes('%') ? decoder.decode(unescapeBytes(plain)) : plain;
}

function unescapeBytes(text: string): Uint8Array {
  const bytes = utf8.encode(text);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] === 0x25) {
      bytes[length++] = hexValue(bytes[i + 1] ?? 0) * 16 + hexValue(bytes[i + 2] ?? 0);
      i += 2;
    } else {
      bytes[length++] = bytes[i] ?? 0;
    }
  }
  return bytes.subarray(0, length);
}

const HEX = '0123456789ABCDEF';

/** Escapes all bytes of the path that need it. Returns a well-formed path unchanged. */
export function escapedPath(path: string): string {
  if (/^[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]%/]*$/.test(path)) return path;
  const bytes = unescapeBytes(path);
  const escaped = Buffer.alloc(bytes.length * 3);
  let length = 0;
  for (const byte of bytes) {
    if (isAllowedUnescaped(byte, 'path')) {
      escaped[length++] = byte;
    } else {
      escaped[length++] = 0x25;
      escaped[length++] = HEX.charCodeAt(byte >> 4);
      escaped[length++] = HEX.charCodeAt(byte & 15);
    }
  }
  return escaped.toString('latin1', 0, length);
}

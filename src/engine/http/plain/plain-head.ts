/**
 * Parses the head of a plain HTTP/1.1 request: it arrived completely, has no unusual headers, and has no body or one of
 * a known, small length. Pure. All other requests, in particular malformed ones, are left to node's parser: every
 * parser reads what this one accepts in the same way.
 */

export type HeaderFields = Readonly<Record<string, string>>;

export interface PlainHead {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderFields;
  readonly bodyBytes: number;
}

/** The header fields of a request, cached because clients send the same ones repeatedly. */
export interface KnownFields {
  readonly text: string;
  readonly headers: HeaderFields;
  readonly bodyBytes: number;
}

/** Larger bodies are left to node's server. */
const MAX_PLAIN_BODY_BYTES = 1024 * 1024;

const REQUEST_LINE = /^(GET|POST|PUT|PATCH|DELETE) (\/[!-~]*) HTTP\/1\.1$/;
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_VALUE = /^[\t -~]*$/;
const DIGITS = /^\d{1,7}$/;

/** Headers that change how the request is read or what happens to the connection. */
const UNUSUAL: ReadonlySet<string> = new Set(['transfer-encoding', 'upgrade', 'expect', 'te', 'trailer']);

/** Watches and followed logs stream without a length, which is left to node's server. */
const ENDLESS = /[?&](?:watch|follow)=/;

/**
 * `text` is everything before the empty line. Returns undefined if the request is not plain. `known` caches the fields
 * of an earlier request.
 */
export function plainHead(
  text: string,
  known: KnownFields | undefined,
): { readonly head: PlainHead; readonly fields: KnownFields } | undefined {
  const end = text.indexOf('\r\n');
  if (end < 0) return undefined;
  const [, method, url] = REQUEST_LINE.exec(text.slice(0, end)) ?? [];
  if (method === undefined || url === undefined || ENDLESS.test(url)) return undefined;
  const rest = text.slice(end + 2);
  const fields = known !== undefined && known.text === rest ? known : readFields(rest);
  if (fields === undefined) return undefined;
  const { headers, bodyBytes } = fields;
  return { head: { method, url, headers, bodyBytes }, fields };
}

function readFields(text: string): KnownFields | undefined {
  const headers: Record<string, string> = Object.create(null);
  for (const line of text.split('\r\n')) {
    // Not a single regular expression: the spaces around a value would make it quadratic.
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, Math.max(colon, 0)).toLowerCase(), line.slice(colon + 1)];
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return undefined;
    if (name in headers || UNUSUAL.has(name)) return undefined;
    headers[name] = value.trim();
  }
  const { host, connection, 'content-length': length = '0' } = headers;
  if (host === undefined || (connection !== undefined && connection.toLowerCase() !== 'keep-alive')) return undefined;
  if (!DIGITS.test(length) || Number(length) > MAX_PLAIN_BODY_BYTES) return undefined;
  return { text, headers, bodyBytes: Number(length) };
}

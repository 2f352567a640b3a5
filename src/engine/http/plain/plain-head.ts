/**
 * The head of a plain request of HTTP/1.1: one that came whole, says nothing unusual, and has a body of a known, small
 * length or none. Pure. Whatever is not plain, malformed requests first, is left to node's own parser: what this file
 * accepts, every parser reads in the same way.
 */

export type HeaderFields = Readonly<Record<string, string>>;

export interface PlainHead {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderFields;
  readonly bodyBytes: number;
}

/** The fields of a head, kept because clients send the same ones again and again. */
export interface KnownFields {
  readonly text: string;
  readonly headers: HeaderFields;
  readonly bodyBytes: number;
}

/** A larger body is somebody else's to read. */
const MAX_PLAIN_BODY_BYTES = 1024 * 1024;

const REQUEST_LINE = /^(GET|POST|PUT|PATCH|DELETE) (\/[!-~]*) HTTP\/1\.1$/;
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_VALUE = /^[\t -~]*$/;
const DIGITS = /^\d{1,7}$/;

/** They change how the request is read, or what becomes of the connection. */
const UNUSUAL: ReadonlySet<string> = new Set(['transfer-encoding', 'upgrade', 'expect', 'te', 'trailer']);

/** A watch never ends by itself, and node's parser knows best how to send what has no length. */
const ENDLESS = /[?&](?:watch|follow)=/;

/**
 * `text` is everything before the empty line; undefined = not plain. With `known` fields of an earlier request, a head
 * with the same ones costs next to nothing.
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
    // No one expression for all of it: with the spaces around a value it would take the square of their number.
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

/**
 * Decides which headers are forwarded, in either direction: never those of the connection, and never credentials. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiRequest } from '#engine/request/request.ts';

/** Hop-by-hop headers of RFC 9110 7.6.1, and common variants. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Headers that we set or consume ourselves. */
const OWN_REQUEST: ReadonlySet<string> = new Set(['authorization', 'host', 'expect', 'content-length']);
const OWN_RESPONSE: ReadonlySet<string> = new Set(['content-length', 'content-type', 'audit-id', 'date']);

/** Headers that claim a user or an origin: only we set them. */
const CLAIMS = /^(?:x-remote-|impersonate-|x-forwarded-|forwarded$)/;

/** Reports whether a request header is forwarded, by its lower-case name. */
export function isForwarded(name: string): boolean {
  return !name.startsWith(':') && !OF_CONNECTION.has(name) && !OWN_REQUEST.has(name) && !CLAIMS.test(name);
}

/** Returns the headers to forward. A local request has only the three from its fields. */
export function requestHeaders(request: ApiRequest): Record<string, string | string[]> {
  const { accept, contentType, userAgent } = request;
  const headers: Record<string, string> = Object.create(null);
  const named = namedByConnection(request.header?.('connection'));
  for (const name of request.headerNames?.() ?? []) {
    const value = request.header?.(name);
    if (value !== undefined && isForwarded(name) && !named.has(name)) headers[name] = value;
  }
  if (accept !== '') headers['accept'] = accept;
  if (contentType !== '') headers['content-type'] = contentType;
  if (userAgent !== '') headers['user-agent'] = userAgent;
  return headers;
}

/** Returns the response headers to forward, without content type and length, which are set separately. */
export function responseHeaders(received: IncomingHttpHeaders): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  const named = namedByConnection(received.connection);
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || OF_CONNECTION.has(name) || OWN_RESPONSE.has(name) || named.has(name)) continue;
    headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return headers;
}

/** A sender may declare further headers as hop-by-hop. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NONE;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

const NONE: ReadonlySet<string> = new Set();

/** Which headers go on, in either direction: never those of the connection, never who proved what to us. Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiRequest } from '#engine/request.ts';

/** RFC 9110 7.6.1, and what people send in its place. */
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

/** Ours to say, or to know. */
const OWN_REQUEST: ReadonlySet<string> = new Set(['authorization', 'host', 'expect', 'content-length']);
const OWN_RESPONSE: ReadonlySet<string> = new Set(['content-length', 'content-type', 'audit-id', 'date']);

/** Claims about who asks, or from where: only we make them. */
const CLAIMS = /^(?:x-remote-|impersonate-|x-forwarded-|forwarded$)/;

/** Whether whoever a request is handed on to may see this header, by its lower-case name. */
export function isForwarded(name: string): boolean {
  return !name.startsWith(':') && !OF_CONNECTION.has(name) && !OWN_REQUEST.has(name) && !CLAIMS.test(name);
}

/** Of a request of this process as well, which has no headers but these three. */
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

/** The content type is a field of its own, the length is counted anew. */
export function responseHeaders(received: IncomingHttpHeaders): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  const named = namedByConnection(received.connection);
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || OF_CONNECTION.has(name) || OWN_RESPONSE.has(name) || named.has(name)) continue;
    headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return headers;
}

/** A sender may declare more headers to be its connection's own. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NONE;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

const NONE: ReadonlySet<string> = new Set();

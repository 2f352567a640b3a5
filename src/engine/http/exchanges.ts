/** Exchanges of the two protocols: requests of HTTP/2, of HTTP/1.1, and HTTP/1.1 upgrades. */
import {
  constants,
  sensitiveHeaders,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { remoteEndOf } from '#engine/http/connection-user.ts';
import { readRequestBody } from '#engine/http/body.ts';
import type { Exchange } from '#engine/http/exchange.ts';
import { MAX_BODY_BYTES } from '#engine/request/limits.ts';
import { byteLength, writePieces } from '#engine/http/write-pieces.ts';
import { newUid } from '#lib/ids.ts';

/** Time that a client has to end its request after it got the response; meanwhile its data is dropped. */
const LINGER_MS = 2000;
/** Bytes that are read and dropped after a response to a caller without a user. */
const MAX_DROPPED_BYTES = 256 * 1024;
/** Bytes of a body that a client may send before anybody reads them. They are not counted, so they are few. */
export const WINDOW_BYTES = 64 * 1024 - 1;
/** Streams of a connection at a time, before and after its user is known. Each takes memory, and time when it begins. */
export const FIRST_STREAMS = 16;
const MAX_STREAMS = 100;

export function http2Exchange(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Exchange {
  // Without a listener, an aborted stream would be an uncaught error.
  stream.on('error', () => {});
  const { session } = stream;
  const { peer, sourceIp, connection } = remoteEndOf(session!);
  const auditId = newUid();
  let isTrusted = false;
  let isForwarded = false;
  return {
    method: headers[':method'] ?? '',
    url: headers[':path'] ?? '',
    headers,
    peer,
    sourceIp,
    connection,
    auditId,
    get isClosed() {
      return stream.destroyed;
    },
    body: (account) => readRequestBody(stream, headers['content-length'], account),
    trust() {
      isTrusted = true;
      allowStreams(session!);
    },
    bodyStream() {
      isForwarded = true;
      return stream;
    },
    onClose: (fn) => void stream.once('close', fn),
    respond(status, responseHeaders, body) {
      if (stream.destroyed || stream.headersSent) return () => 0;
      stream.respond(withAuditId(auditId, { ':status': status, ...responseHeaders }));
      const progress = writePieces(stream, body);
      if (!stream.endAfterHeaders && !stream.readableEnded) dropRest(stream, isTrusted, () => stream.close());
      return progress;
    },
    cut: () => stream.close(constants.NGHTTP2_CANCEL),
    startStream(responseHeaders) {
      stream.respond(withAuditId(auditId, { ':status': 200, ...responseHeaders }));
      if (!isForwarded && !stream.endAfterHeaders) dropDuring(stream);
      return stream;
    },
  };
}

const allowed = new WeakSet<Http2Session>();

/** Allows more streams when the user is known. A repeated call does nothing. */
export function allowStreams(session: Http2Session): void {
  if (session.destroyed || allowed.has(session)) return;
  allowed.add(session);
  session.settings({ maxConcurrentStreams: MAX_STREAMS });
}

/** Drops a body that nobody reads while its response is sent. A client that sends much more than a body is cut off. */
function dropDuring(stream: ServerHttp2Stream): void {
  let dropped = 0;
  stream.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_BODY_BYTES) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
}

/** Drops what a client still sends after its response, for a short time. The caller of a small request sees the response. */
function dropRest(request: Readable, isTrusted: boolean, close: () => void): void {
  const timer = setTimeout(close, LINGER_MS);
  timer.unref();
  const isOver = () => clearTimeout(timer);
  request.once('end', isOver).once('close', isOver);
  let dropped = 0;
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (!isTrusted && dropped > MAX_DROPPED_BYTES) close();
  });
}

/** Excluded from the HPACK index: it is unique and would evict useful entries. */
const UNINDEXED = ['audit-id'];

function withAuditId(auditId: string, headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  headers['audit-id'] = auditId;
  headers[sensitiveHeaders as unknown as string] = UNINDEXED;
  return headers;
}

export function http1Exchange(request: IncomingMessage, response: ServerResponse): Exchange {
  const { peer, sourceIp, connection } = remoteEndOf(request.socket as TLSSocket);
  const auditId = newUid();
  let isTrusted = false;
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: request.headers,
    peer,
    sourceIp,
    connection,
    auditId,
    get isClosed() {
      return response.destroyed;
    },
    trust() {
      isTrusted = true;
    },
    body: (account) => readRequestBody(request, request.headers['content-length'], account),
    bodyStream: () => request,
    onClose: (fn) => void response.once('close', fn),
    respond(status, headers, body) {
      if (response.destroyed || response.headersSent) return () => 0;
      response.writeHead(status, { 'audit-id': auditId, ...headers, 'content-length': byteLength(body) });
      const progress = writePieces(response, body);
      if (!request.complete) dropRest(request, isTrusted, () => request.socket.destroy());
      return progress;
    },
    cut: () => request.socket.destroy(),
    startStream(headers) {
      response.writeHead(200, { 'audit-id': auditId, ...headers });
      response.flushHeaders();
      return response;
    },
  };
}

/** An HTTP/1.1 upgrade request. It may also get an ordinary response. The data after it is not a body. */
export function upgradeExchange(
  request: IncomingMessage,
  response: ServerResponse,
  head: Buffer,
  leaveHttp: () => void,
): Exchange {
  const { socket } = request;
  socket.on('error', () => {});
  return {
    ...http1Exchange(request, response),
    get isClosed() {
      return socket.destroyed;
    },
    upgrade: request.headers.upgrade ?? '',
    body: async () => NO_BYTES,
    bodyStream: () => Readable.from([]),
    onClose: (fn) => void socket.once('close', fn),
    takeOver(upgraded) {
      response.detachSocket(socket);
      socket.setTimeout(0);
      leaveHttp();
      upgraded.takeOver(socket, head);
    },
  };
}

const NO_BYTES = Buffer.alloc(0);

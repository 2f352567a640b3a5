/** Relays the response of another server: small ones as a whole, others as a stream. */
import type { IncomingMessage } from 'node:http';
import { responseHeaders } from '#engine/remote/forwarded-headers.ts';
import { LATE_BODY } from '#engine/remote/go-network-error.ts';
import { UpstreamError } from '#engine/remote/https-upstream.ts';
import type { ApiResponse, BytesResponse, StreamResponse, StreamSink } from '#engine/request/request.ts';
import type { Clock } from '#lib/clock.ts';
import { BodyTooLargeError, HttpsTimeoutError } from '#lib/https/https-error.ts';
import { readBodyWithin } from '#lib/https/read-body.ts';

/** Responses with a Content-Length up to this are sent as a whole. */
const SMALL_BYTES = 1024 * 1024;
/** Limit for a response that must be buffered completely. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;
const BODY_TIMEOUT_MS = 60_000;
/** Limit for data read ahead of the client. */
const MAX_UNREAD_BYTES = 256 * 1024;

const REDIRECT_REFUSED = 'the backend attempted to redirect this request, which is not permitted';

/** Rejects with UpstreamError if the response is truncated, too long or too slow. */
export async function relayResponse(incoming: IncomingMessage, method: string, clock: Clock): Promise<ApiResponse> {
  const { statusCode: status = 502, headers: received } = incoming;
  if (status >= 300 && status <= 399 && received.location !== undefined) {
    incoming.destroy();
    return plainText(502, REDIRECT_REFUSED);
  }
  const contentType = received['content-type'] ?? 'application/octet-stream';
  const headers = responseHeaders(received);
  const length = Number(received['content-length'] ?? Number.NaN);
  if (status === 200 && method !== 'HEAD' && !(length <= SMALL_BYTES)) {
    return { status, contentType, headers, stream: (sink) => pipeToSink(incoming, sink) };
  }
  return { status, contentType, headers, body: await readResponseBody(incoming, clock, MAX_HELD_BYTES) };
}

/** Returns a stream of the response with this content type, regardless of its length. */
export function relayStream(incoming: IncomingMessage, contentType: string): StreamResponse {
  return { status: 200, contentType, stream: (sink) => pipeToSink(incoming, sink) };
}

/** Reads a response completely. Rejects with UpstreamError if it is truncated, too long or too slow. */
export async function readResponseBody(incoming: IncomingMessage, clock: Clock, maxBytes: number): Promise<Buffer> {
  try {
    return await readBodyWithin(incoming, { maxBytes, timeoutMs: BODY_TIMEOUT_MS, clock });
  } catch (cause) {
    if (cause instanceof BodyTooLargeError) throw new UpstreamError(cause.message, { cause });
    const isLate = cause instanceof HttpsTimeoutError;
    throw new UpstreamError(isLate ? LATE_BODY : 'unexpected EOF', { cause });
  }
}

/** A sink that can also abort, so that the client sees an incomplete response (http/exchange.ts). */
export interface CuttableSink extends StreamSink {
  cut?(): void;
}

function pipeToSink(incoming: IncomingMessage, sink: CuttableSink): () => void {
  let ended = false;
  incoming.on('data', (chunk: Buffer) => {
    sink.write(chunk);
    if (sink.bufferedBytes <= MAX_UNREAD_BYTES || incoming.isPaused()) return;
    incoming.pause();
    sink.onDrain(() => incoming.resume());
  });
  incoming.once('end', () => {
    ended = true;
    sink.end();
  });
  const broken = () => {
    if (ended) return;
    ended = true;
    if (sink.cut === undefined) sink.end();
    else sink.cut();
  };
  if (incoming.destroyed && !incoming.readableEnded) broken();
  else incoming.once('close', broken);
  return () => {
    ended = true;
    incoming.destroy();
  };
}

/**
 * Formats a plain-text response like Go's http.Error, which kube-aggregator sends for a server that does not respond.
 */
export function plainText(status: number, message: string): BytesResponse {
  const headers = { 'x-content-type-options': 'nosniff' };
  return { status, contentType: 'text/plain; charset=utf-8', headers, body: Buffer.from(`${message}\n`) };
}

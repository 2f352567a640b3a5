/** Relays the response of another server: small ones as a whole, others as a stream. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WATCH_LINGER_MS } from '#engine/request/limits.ts';
import { responseHeaders } from '#engine/remote/forwarded-headers.ts';
import { UpstreamError, type UpgradedConnection } from '#engine/remote/https-upstream.ts';
import type {
  ApiResponse,
  BytesResponse,
  StreamResponse,
  StreamSink,
  UpgradeResponse,
} from '#engine/request/request.ts';
import type { Clock } from '#lib/clock.ts';

/** Responses with a Content-Length up to this are sent as a whole. */
const SMALL_BYTES = 1024 * 1024;
/** Limit for a response that must be buffered completely. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;
const BODY_TIMEOUT_MS = 60_000;
/** Limit for data read ahead of the client. */
const MAX_UNREAD_BYTES = 256 * 1024;
const KEEP_ALIVE_MS = 30_000;

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

/** Reads a response completely; rejects if it is too long or too slow. */
export function readResponseBody(incoming: IncomingMessage, clock: Clock, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (why: string) => {
      incoming.destroy();
      reject(new UpstreamError(why));
    };
    const stopTimer = clock.after(BODY_TIMEOUT_MS, () => fail('net/http: request canceled while reading body'));
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) fail(`the response is larger than ${maxBytes} bytes`);
      else chunks.push(chunk);
    });
    incoming.once('close', () => {
      stopTimer();
      if (incoming.complete) resolve(Buffer.concat(chunks, bytes));
      else reject(new UpstreamError('unexpected EOF'));
    });
  });
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

/** Connects both sides: forwards bytes and half-closes, and closes both together. */
export function relayRemoteUpgrade({
  incoming,
  connection: upstream,
  head: sent,
}: UpgradedConnection): UpgradeResponse {
  return {
    status: 101,
    takeOver(client, head) {
      client.on('error', () => {});
      client.write(statusLine(incoming));
      if (sent.length > 0) client.write(sent);
      if (head.length > 0) upstream.write(head);
      client.pipe(upstream);
      upstream.pipe(client);
      client.once('close', () => finish(upstream));
      upstream.once('close', () => finish(client));
      // Such a connection may be silent, so only TCP keep-alive detects a dead peer.
      for (const side of [client, upstream] as { setKeepAlive?(on: boolean, ms: number): void }[]) {
        side.setKeepAlive?.(true, KEEP_ALIVE_MS);
      }
      if (upstream.destroyed) finish(client);
    },
  };
}

/** Ends a side; written data is still sent for a while. */
function finish(side: Duplex): void {
  if (side.destroyed) return;
  if (side.writableFinished) {
    side.destroy();
    return;
  }
  const timer = setTimeout(() => side.destroy(), WATCH_LINGER_MS);
  timer.unref();
  side.once('close', () => clearTimeout(timer));
  side.once('finish', () => side.destroy());
  if (!side.writableEnded) side.end();
}

function statusLine({ statusMessage = '', rawHeaders }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage === '' ? 'Switching Protocols' : statusMessage}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/**
 * Formats a plain-text response like Go's http.Error, which kube-aggregator sends for a server that does not respond.
 */
export function plainText(status: number, message: string): BytesResponse {
  const headers = { 'x-content-type-options': 'nosniff' };
  return { status, contentType: 'text/plain; charset=utf-8', headers, body: Buffer.from(`${message}\n`) };
}

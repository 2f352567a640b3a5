/** One request and its answer, the same for HTTP/1.1 and HTTP/2. */
import type { Writable } from 'node:stream';
import type { Authenticator, Evidence } from '#engine/auth/authenticate.ts';
import type { ApiHandler, ApiRequest, ApiResponse, StreamSink } from '#engine/request.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly peer: Evidence['peerCertificate'];
  body(): Promise<Buffer>;
  onClose(fn: () => void): void;
  respond(status: number, headers: Record<string, string | string[]>, body: Buffer): void;
  startStream(headers: Record<string, string | string[]>): Writable;
}

export interface Serving {
  readonly handler: ApiHandler;
  readonly authenticate: Authenticator;
  readonly log: Log;
}

const NO_QUERY = new URLSearchParams();

export function serve(exchange: Exchange, { handler, authenticate, log }: Serving): void {
  answer(exchange, handler, authenticate).catch((error: unknown) => {
    log.error({ err: error, method: exchange.method, url: exchange.url }, 'answer failed');
  });
}

async function answer(exchange: Exchange, handler: ApiHandler, authenticate: Authenticator): Promise<void> {
  let request: ApiRequest;
  try {
    request = parseRequest(exchange, authenticate);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    send(exchange, {
      status: error.code,
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(error.toStatus())),
    });
    return;
  }
  send(exchange, await handler(request));
}

function parseRequest(exchange: Exchange, authenticate: Authenticator): ApiRequest {
  const { url, headers } = exchange;
  const mark = url.indexOf('?');
  const user = authenticate({
    peerCertificate: exchange.peer,
    authorization: text(headers['authorization']) || undefined,
  });
  let aborting: AbortController | undefined;
  return {
    method: exchange.method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1)),
    user,
    accept: text(headers['accept']),
    contentType: text(headers['content-type']),
    userAgent: text(headers['user-agent']),
    header: (name) => text(headers[name]) || undefined,
    body: () => exchange.body(),
    // Few requests ever look at it, and it is not free.
    get signal() {
      if (aborting === undefined) {
        const controller = (aborting = new AbortController());
        exchange.onClose(() => controller.abort());
      }
      return aborting.signal;
    },
  };
}

function text(header: string | string[] | undefined): string {
  return header === undefined ? '' : Array.isArray(header) ? header.join(',') : header;
}

function send(exchange: Exchange, response: ApiResponse): void {
  const headers: Record<string, string | string[]> = {
    'cache-control': 'no-cache, private',
    'content-type': response.contentType,
    ...response.headers,
  };
  if (response.warnings !== undefined && response.warnings.length > 0)
    headers['warning'] = response.warnings.map(warningHeader);
  if ('stream' in response) {
    const stream = exchange.startStream(headers);
    exchange.onClose(response.stream(sinkOf(stream)));
    return;
  }
  const { body } = response;
  exchange.respond(response.status, headers, Array.isArray(body) ? Buffer.concat(body) : (body as Buffer));
}

function sinkOf(stream: Writable): StreamSink {
  return {
    write: (chunk) => !stream.destroyed && !stream.writableEnded && stream.write(chunk),
    get bufferedBytes() {
      return stream.writableLength;
    },
    end() {
      if (!stream.destroyed) stream.end();
    },
  };
}

/** RFC 7234: code, agent, quoted text; header values must stay on one line of ASCII. */
function warningHeader(message: string): string {
  const line = message.replace(/[^\x20-\x7e]/g, ' ').slice(0, 2048);
  return `299 - "${line.replace(/(["\\])/g, '\\$1')}"`;
}

/** One request and its answer on a connection, the same for HTTP/2 and HTTP/1.1. */
import { constants } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import type { Agent } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { TransportError } from '#client/transport.ts';

export interface HttpRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read to its end or left: leaving cancels the request. Throws when the connection breaks. */
  readonly body: AsyncIterable<Buffer>;
}

/** The server surely did nothing with the request: it may be sent again on another connection, whatever it asks for. */
export class NotTakenError extends TransportError {
  override name = 'NotTakenError';
}

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

export function exchangeHttp2(session: ClientHttp2Session, request: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { body } = request;
    const stream = openStream(session, request);
    // These stay for the whole life of the stream: an error without a listener would end the process.
    stream.on('error', (cause: Error) => {
      const refused = stream.rstCode === NGHTTP2_REFUSED_STREAM;
      reject(refused ? new NotTakenError('the server refused the stream', { cause }) : cause);
    });
    stream.on('close', () => reject(new TransportError('the connection was closed before an answer came')));
    stream.on('response', (answer) => {
      resolve({ status: answer[':status'] ?? 0, headers: answer, body: http2Body(stream) });
    });
    if (body !== undefined) stream.end(body);
  });
}

function openStream(session: ClientHttp2Session, { method, path, headers, body, signal }: HttpRequest) {
  try {
    return session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined, signal });
  } catch (cause) {
    // The session has just ended, and nothing was sent.
    throw new NotTakenError((cause as Error).message, { cause });
  }
}

async function* http2Body(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void, undefined> {
  try {
    // Not `for await`: node takes a stream that the server has ended for broken, although its data is still here.
    for (;;) {
      const chunk = stream.read() as Buffer | null;
      if (chunk !== null) yield chunk;
      else if (stream.readableEnded || stream.destroyed) break;
      else await moreOf(stream);
    }
    if (stream.errored) throw stream.errored;
    if (!stream.readableEnded) throw new TransportError('the connection was closed inside the answer');
    // A stream that was reset ends like one that is complete.
    if (stream.aborted || (stream.rstCode ?? NGHTTP2_NO_ERROR) !== NGHTTP2_NO_ERROR) {
      throw new TransportError(`the server reset the stream (code ${stream.rstCode})`);
    }
  } finally {
    if (!stream.closed) stream.close(NGHTTP2_CANCEL);
  }
}

/** Resolves when there is something to read, or nothing will come any more. */
function moreOf(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'close'] as const;
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.on(event, done);
  });
}

export interface Http1Server {
  readonly host: string;
  readonly port: number;
  readonly agent: Agent;
}

export function exchangeHttp1(server: Http1Server, request: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method, path, body, signal } = request;
    const headers = { ...request.headers, ...(body === undefined ? {} : { 'content-length': String(body.length) }) };
    const { host, port, agent } = server;
    const outgoing = httpsRequest({ host, port, agent, method, path, headers, signal }, (answer) => {
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: http1Body(answer) });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function* http1Body(answer: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of answer) yield chunk as Buffer;
    if (!answer.complete) throw new TransportError('the connection was closed inside the answer');
  } finally {
    if (!answer.complete) answer.destroy();
  }
}

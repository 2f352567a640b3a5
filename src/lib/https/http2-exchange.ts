/** Sends one request on an HTTP/2 session and receives its response. */
import { constants } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpsError, NotProcessedError } from '#lib/https/https-error.ts';

export interface ExchangeRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal;
}

export interface StreamedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read to its end or be left, which cancels the request. Throws if the connection breaks. */
  readonly body: AsyncIterable<Buffer>;
}

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

export function exchangeHttp2(session: ClientHttp2Session, request: ExchangeRequest): Promise<StreamedResponse> {
  return new Promise((resolve, reject) => {
    const { body } = request;
    const stream = openStream(session, request);
    // Kept for the lifetime of the stream, because an error without a listener would end the process.
    stream.on('error', (cause: Error) => {
      const refused = stream.rstCode === NGHTTP2_REFUSED_STREAM;
      reject(refused ? new NotProcessedError('the server refused the stream', { cause }) : cause);
    });
    stream.on('close', () => reject(new HttpsError('the connection was closed before the response')));
    stream.on('response', (response) => {
      resolve({ status: response[':status'] ?? 0, headers: response, body: http2Body(stream) });
    });
    if (body !== undefined) stream.end(body);
  });
}

function openStream(session: ClientHttp2Session, { method, path, headers, body, signal }: ExchangeRequest) {
  try {
    return session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined, signal });
  } catch (cause) {
    // The session has just ended and nothing was sent.
    throw new NotProcessedError((cause as Error).message, { cause });
  }
}

async function* http2Body(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void, undefined> {
  try {
    // Not `for await`: Node treats a stream that the server has ended as broken although its data is still buffered.
    for (;;) {
      const chunk = stream.read() as Buffer | null;
      if (chunk !== null) yield chunk;
      else if (stream.readableEnded || stream.destroyed) break;
      else await waitForData(stream);
    }
    if (stream.errored) throw stream.errored;
    if (!stream.readableEnded) throw new HttpsError('the connection was closed during the response');
    // A stream that was reset ends like a complete one.
    if (stream.aborted || (stream.rstCode ?? NGHTTP2_NO_ERROR) !== NGHTTP2_NO_ERROR) {
      throw new HttpsError(`the server reset the stream (code ${stream.rstCode})`);
    }
  } finally {
    if (!stream.closed) stream.close(NGHTTP2_CANCEL);
  }
}

/** Resolves when there is more data to read, or the stream has ended. */
function waitForData(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'close'] as const;
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.on(event, done);
  });
}

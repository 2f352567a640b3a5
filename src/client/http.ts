/**
 * The transport over HTTPS: headers, credentials, limits and deadlines. Connections are http-connections.ts's.
 * Nothing is retried here: a request that fails is its caller's to repeat, who knows whether it may be.
 */
import { readFile } from 'node:fs/promises';
import { startAttempt } from '#client/abort.ts';
import type { Attempt } from '#client/abort.ts';
import { HttpConnections } from '#client/http-connections.ts';
import type { HttpAnswer } from '#client/http-exchange.ts';
import { jsonLines } from '#client/json-lines.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { TokenSource } from '#client/token-source.ts';
import {
  DEFAULT_ANSWER_BYTES,
  TransportError,
  describeRequest,
  errorOfAnswer,
  parseAnswer,
} from '#client/transport.ts';
import type { Transport, TransportRequest, TransportResponse } from '#client/transport.ts';
import { parseWarnings } from '#client/warnings.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';

export interface HttpTransport extends Transport {
  /** The same server, with another client certificate, or other authorities. Requests under way go on. */
  renew(access: ClusterAccess): void;
  /** Ends all connections; requests on them fail. */
  close(): void;
}

export interface HttpTransportOptions {
  readonly userAgent: string;
  readonly clock: Clock;
  /** For a whole answer, and for the head of a stream. */
  readonly timeoutMs?: number;
  readonly maxLineBytes?: number;
  readonly readFile?: (path: string) => Promise<string>;
}

/** A little more than the minute after which kube-apiserver gives up by itself. */
const TIMEOUT_MS = 65_000;

export function createHttpTransport(access: ClusterAccess, options: HttpTransportOptions): HttpTransport {
  const { userAgent, clock, timeoutMs = TIMEOUT_MS, maxLineBytes } = options;
  const connections = new HttpConnections(access, clock);
  const { token, tokenFile } = access;
  const tokens = new TokenSource({ token, tokenFile, clock, readFile: options.readFile ?? readText });
  const prefix = new URL(access.server).pathname.replace(/\/+$/, '');

  async function exchange(request: TransportRequest, { signal }: Attempt): Promise<HttpAnswer> {
    const { method, path, query, accept = 'application/json' } = request;
    const headers: Record<string, string> = { accept, 'user-agent': userAgent };
    const bearer = await tokens.token();
    if (bearer !== undefined) headers['authorization'] = `Bearer ${bearer}`;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    if (body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    const target = query === undefined || query.size === 0 ? path : `${path}?${query.toString()}`;
    const answer = await connections.exchange({ method, path: prefix + target, headers, body, signal });
    if (answer.status >= 200 && answer.status <= 299) return answer;
    if (answer.status === 401) tokens.refused();
    throw errorOfAnswer(answer.status, await readAll(answer.body, DEFAULT_ANSWER_BYTES));
  }

  function attempt(request: TransportRequest): Attempt {
    const error = () => new TransportError(`no answer within ${timeoutMs / 1000} seconds`);
    return startAttempt(clock, { timeoutMs, error, signal: request.signal });
  }

  return {
    async request(request): Promise<TransportResponse> {
      const trial = attempt(request);
      try {
        const { status, headers, body } = await exchange(request, trial);
        const text = await readAll(body, request.maxAnswerBytes ?? DEFAULT_ANSWER_BYTES);
        return {
          status,
          body: parseAnswer(text, describeRequest(request)),
          warnings: parseWarnings(headers['warning']),
        };
      } catch (error) {
        throw failureOf(error, request, trial);
      } finally {
        trial.release();
      }
    },

    async *stream(request) {
      const trial = attempt(request);
      const onAbort = (): void => trial.abort(request.signal?.reason);
      try {
        const { body } = await exchange(request, trial);
        // From here on only the caller's signal ends it.
        trial.release();
        if (request.signal?.aborted) onAbort();
        request.signal?.addEventListener('abort', onAbort);
        yield* jsonLines(body, { what: describeRequest(request), readLine: request.readLine, maxLineBytes });
      } catch (error) {
        throw failureOf(error, request, trial);
      } finally {
        trial.release();
        request.signal?.removeEventListener('abort', onAbort);
      }
    },

    renew: (renewed) => connections.renew(renewed),
    close: () => connections.close(),
  };
}

/** What the caller gets to see: the API's own error, the reason of the abort, or a TransportError with its cause. */
function failureOf(error: unknown, request: TransportRequest, { signal }: Attempt): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  if (error instanceof ApiError) return error;
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (cause instanceof TransportError && cause.message.startsWith('Cannot ')) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new TransportError(`Cannot ${describeRequest(request)}: ${message}`, { cause });
}

async function readAll(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new TransportError(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)).toString('utf8');
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8');
}

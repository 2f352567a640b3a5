/**
 * The port between the client and whatever carries its requests: HTTPS (http.ts), a function call (in-process.ts)
 * or a fake (testing/). A transport knows bytes, JSON and HTTP codes; kinds and paths are rest-client.ts's.
 */
import { ApiError } from '#kube/api-error.ts';
import type { Status } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path without the query. */
  readonly path: string;
  readonly query?: URLSearchParams;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  /** A longer answer is an error; DEFAULT_ANSWER_BYTES unless told otherwise. */
  readonly maxAnswerBytes?: number;
  /** Of a stream: what makes a value of a line, instead of JSON.parse. Throws for what it cannot read. */
  readonly readLine?: ((line: string) => unknown) | undefined;
  readonly signal?: AbortSignal;
}

export interface TransportResponse {
  readonly status: number;
  /** Parsed anew for each caller: nobody shares it. */
  readonly body: unknown;
  readonly warnings: readonly string[];
}

export interface Transport {
  /** Throws ApiError for every answer that is not 2xx, TransportError when there is none, the signal's reason on abort. */
  request(request: TransportRequest): Promise<TransportResponse>;
  /** The answer's lines as they come, each one parsed. Ends when the server ends it; throws as `request` does. */
  stream(request: TransportRequest): AsyncIterable<unknown>;
}

/** No answer, or not all of it: the connection failed, or what came is not what the protocol allows. May be retried. */
export class TransportError extends Error {
  override name = 'TransportError';
}

/** An object may have 3 MiB as sent; managedFields and the status come on top. */
export const DEFAULT_ANSWER_BYTES = 16 * 1024 * 1024;
/** One page of a list. Stays below the longest string that V8 can hold. */
export const LIST_ANSWER_BYTES = 256 * 1024 * 1024;

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The error that an answer means: its Status where it has one, else (a proxy's page, say) what the code says. */
export function errorOfAnswer(httpCode: number, body: string): ApiError {
  const status = parseStatus(body);
  return ApiError.fromStatus(status ?? { reason: REASONS[httpCode] ?? '' }, httpCode);
}

function parseStatus(body: string): Partial<Status> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) && value['kind'] === 'Status' ? value : undefined;
  } catch {
    return undefined;
  }
}

export function parseAnswer(text: string, what: string, read: (text: string) => unknown = JSON.parse): unknown {
  // Subresources that have nothing to tell answer with nothing.
  if (text === '') return undefined;
  try {
    return read(text);
  } catch (cause) {
    throw new TransportError(`Cannot read the answer to ${what}: it is not JSON`, { cause });
  }
}

/** `GET /api/v1/pods`: how errors name a request. The query stays out: it may be long. */
export function describeRequest({ method, path }: Pick<TransportRequest, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

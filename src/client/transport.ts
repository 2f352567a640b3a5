/**
 * The interface between the client and the carrier of its requests: HTTPS (http.ts), a function call (in-process.ts) or
 * a fake (testing/). A transport knows bytes, JSON and HTTP codes; rest-client.ts knows kinds and paths.
 */
import { ApiError } from '#kube/api-error.ts';
import type { Status } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path without the query. */
  readonly path: string;
  readonly query?: URLSearchParams;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  /** Limit of the response; a longer one is an error. Default: DEFAULT_RESPONSE_BYTES. */
  readonly maxResponseBytes?: number;
  /** Parses a line of a stream instead of JSON.parse. Throws if it cannot. */
  readonly readLine?: ((line: string) => unknown) | undefined;
  readonly signal?: AbortSignal;
}

export interface TransportResponse {
  readonly status: number;
  /** Parsed for each caller, so that no caller shares it. */
  readonly body: unknown;
  readonly warnings: readonly string[];
}

export interface Transport {
  /**
   * Throws ApiError for a response that is not 2xx, TransportError without a response, the signal's reason on abort.
   */
  request(request: TransportRequest): Promise<TransportResponse>;
  /** Yields the parsed lines of the response as they arrive. Ends when the server ends it; throws like `request`. */
  stream(request: TransportRequest): AsyncIterable<unknown>;
}

/** A request got no response, or an incomplete or invalid one. The request may be retried. */
export class TransportError extends Error {
  override name = 'TransportError';
}

/** An object may have 3 MiB in a request; managedFields and status come in addition. */
export const DEFAULT_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Limit for one page of a list. Below the longest string of V8. */
export const LIST_RESPONSE_BYTES = 256 * 1024 * 1024;

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

/**
 * Returns the error of a response: its Status if it has one, otherwise (a proxy's page, for example) that of its code.
 */
export function errorFromResponse(httpCode: number, body: string): ApiError {
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

export function parseResponse(text: string, what: string, read: (text: string) => unknown = JSON.parse): unknown {
  // Some subresources respond without a body.
  if (text === '') return undefined;
  try {
    return read(text);
  } catch (cause) {
    throw new TransportError(`Cannot read the response to ${what}: it is not JSON`, { cause });
  }
}

/** Returns `GET /api/v1/pods`, the request in error messages. Without the query, which may be long. */
export function describeRequest({ method, path }: Pick<TransportRequest, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * The types of requests and responses for handlers, whether over TLS (http/) or in process (client/in-process.ts).
 * Parsed once at the edge.
 */
import type { Duplex, Readable } from 'node:stream';
import type { ApiError } from '#kube/api-error.ts';

export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A request. auth/ determines its user from the connection or the headers. */
export interface ApiRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly user: UserInfo;
  /** The real user, if the request impersonates another one. */
  readonly impersonator?: UserInfo | undefined;
  readonly accept: string;
  readonly contentType: string;
  readonly userAgent: string;
  /** Address of the client. Local requests have none. */
  readonly sourceIp?: string | undefined;
  /** True if a component of this process sent the request. Only the in-process transport sets it. */
  readonly isLocal?: true;
  /** The value of the response's Audit-ID header. */
  readonly auditId?: string | undefined;
  /** Returns any other header by its lower-case name. Local requests have none. */
  header?(name: string): string | undefined;
  /** Returns the names of all headers in lower case. */
  headerNames?(): readonly string[];
  /** Read only by verbs with a body; rejects with 413 above the limit. */
  body(): Promise<Buffer>;
  /** The body as a stream, to forward it without reading. */
  bodyStream?(): Readable;
  /** The protocol that the client wants to upgrade the connection to: `websocket`, `SPDY/3.1`. */
  readonly upgrade?: string | undefined;
  readonly signal: AbortSignal;
}

/** A request that was refused before it was parsed. */
export interface UnauthenticatedRequest {
  readonly method: string;
  /** URL including the query. */
  readonly url: string;
  readonly userAgent: string;
  readonly sourceIp: string | undefined;
  readonly auditId: string;
  readonly error: ApiError;
}

export interface StreamSink {
  write(chunk: Buffer): void;
  /** Bytes written but not accepted by the client yet. */
  readonly bufferedBytes: number;
  /** Calls back once when everything written has been accepted. */
  onDrain(fn: () => void): void;
  /** Ends the stream; the client may still read the written data for a while. */
  end(): void;
}

export interface BytesResponse {
  readonly status: number;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** RFC 7234 Warning texts. */
  readonly warnings?: readonly string[];
  readonly body: Buffer | readonly Buffer[];
}

export interface StreamResponse {
  readonly status: 200;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly warnings?: readonly string[];
  /** Starts sending; called once. Returns a function that is called when the client disconnects. */
  stream(sink: StreamSink): () => void;
}

/** The response to a request with `upgrade`: passes the connection to another handler. */
export interface UpgradeResponse {
  readonly status: 101;
  readonly warnings?: readonly string[];
  /** Receives the connection and the data already read from it. Writes everything itself, including the status line. */
  takeOver(connection: Duplex, head: Buffer): void;
}

export type ApiResponse = BytesResponse | StreamResponse | UpgradeResponse;

/**
 * The whole API as one function, called by the HTTPS listener and the in-process client. Never throws. Synchronous
 * requests (a GET) are answered without a promise, which would cost more than the response.
 */
export type ApiHandler = (request: ApiRequest) => ApiResponse | Promise<ApiResponse>;

/** Returns the request as another user's, without the headers that were only for us. */
export function withUser(
  request: ApiRequest,
  changes: { readonly user?: UserInfo; readonly impersonator?: UserInfo; keeps(header: string): boolean },
): ApiRequest {
  const { method, path, query, accept, contentType, userAgent, sourceIp, auditId, upgrade } = request;
  const { user = request.user, impersonator = request.impersonator, keeps } = changes;
  // Not a spread, because some parts of a request are created on first use.
  return {
    method,
    path,
    query,
    user,
    impersonator,
    accept,
    contentType,
    userAgent,
    sourceIp,
    auditId,
    upgrade,
    header: (name) => (keeps(name) ? request.header?.(name) : undefined),
    headerNames: () => (request.headerNames?.() ?? []).filter((name) => keeps(name)),
    body: () => request.body(),
    ...(request.bodyStream && { bodyStream: () => request.bodyStream!() }),
    get signal() {
      return request.signal;
    },
  };
}

/**
 * A request as the handlers see it, whichever way it came: over TLS (http/) or from this process
 * (client/in-process.ts). Parsed once at the edge.
 */
import type { Duplex, Readable } from 'node:stream';

export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What the connection proved or the headers claim; auth/ turns it into a UserInfo. */
export interface ApiRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly user: UserInfo;
  /** Who really asks, where that is another. */
  readonly impersonator?: UserInfo | undefined;
  readonly accept: string;
  readonly contentType: string;
  readonly userAgent: string;
  /** Of the other end of the connection. Requests of this process have none. */
  readonly sourceIp?: string | undefined;
  /** As the answer's Audit-ID header tells it. */
  readonly auditId?: string | undefined;
  /** Any other header, by its lower-case name. Requests of this process have none. */
  header?(name: string): string | undefined;
  /** All of them, in lower case. */
  headerNames?(): readonly string[];
  /** Read only by verbs that have a body; rejects with 413 past the limit. */
  body(): Promise<Buffer>;
  /** The body as it comes, for whoever hands it on instead of reading it. */
  bodyStream?(): Readable;
  /** The protocol to which the client wants to change the connection: `websocket`, `SPDY/3.1`. */
  readonly upgrade?: string | undefined;
  readonly signal: AbortSignal;
}

export interface StreamSink {
  write(chunk: Buffer): void;
  /** Written and not yet taken by the other side. */
  readonly bufferedBytes: number;
  /** Calls back once when everything that was written has been taken. */
  onDrain(fn: () => void): void;
  /** The other side may still read what was written, for a while. */
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
  /** Starts sending; called once. The result is called when the other side went away. */
  stream(sink: StreamSink): () => void;
}

/** The answer to a request with `upgrade`: from now on the connection is somebody else's. */
export interface UpgradeResponse {
  readonly status: 101;
  readonly warnings?: readonly string[];
  /** Gets the connection and what was read of it already. It writes everything itself, the status line first. */
  takeOver(connection: Duplex, head: Buffer): void;
}

export type ApiResponse = BytesResponse | StreamResponse | UpgradeResponse;

/**
 * The whole API as one function: what the HTTPS listener and the in-process client both call. Never throws. What needs
 * no waiting (a GET) is answered at once: a promise would cost more than the answer.
 */
export type ApiHandler = (request: ApiRequest) => ApiResponse | Promise<ApiResponse>;

/** The request as somebody else's, without the headers that were only for us. */
export function handedOn(
  request: ApiRequest,
  changes: { readonly user?: UserInfo; readonly impersonator?: UserInfo; keeps(header: string): boolean },
): ApiRequest {
  const { method, path, query, accept, contentType, userAgent, sourceIp, auditId, upgrade } = request;
  const { user = request.user, impersonator = request.impersonator, keeps } = changes;
  // Not a spread: a request makes some of its parts only when they are looked at.
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

/**
 * Requests and responses of an aggregated API. They repeat the types of engine/request/request.ts, because code above the API
 * must not depend on the engine; the compiler compares them where the two are connected.
 */
import type { RelayedUpgrade } from '#lib/https/relay-upgrade.ts';

export interface SubresourceRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The user that the API server authenticated. */
  readonly user: { readonly name: string; readonly groups: readonly string[] };
  /** Returns a header by its lower-case name. */
  header?(name: string): string | undefined;
  body(): Promise<Buffer>;
  /** The protocol to which the client asks to upgrade the connection. */
  readonly upgrade?: string | undefined;
  readonly signal: AbortSignal;
}

export interface SubresourceBytes {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export type SubresourceResponse = SubresourceBytes | RelayedUpgrade;
export type SubresourceHandler = (request: SubresourceRequest) => Promise<SubresourceResponse>;

export function jsonResponse(status: number, value: unknown): SubresourceBytes {
  return { status, contentType: 'application/json', body: Buffer.from(JSON.stringify(value)) };
}

/** Returns the response of a verb without content. */
export function emptyResponse(status: number): SubresourceBytes {
  return { status, contentType: 'application/json', body: Buffer.alloc(0) };
}

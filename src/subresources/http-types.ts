/**
 * Requests and answers of an aggregated API, as engine/request.ts has them, stated again: everything above the API must
 * not know the engine. Whoever joins the two lets the compiler compare them.
 */
import type { Duplex } from 'node:stream';

export interface SubresourceRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** For whom it is, as the API server says. */
  readonly user: { readonly name: string; readonly groups: readonly string[] };
  /** Any header, by its lower-case name. */
  header?(name: string): string | undefined;
  body(): Promise<Buffer>;
  /** The protocol to which the client wants to change the connection. */
  readonly upgrade?: string | undefined;
  readonly signal: AbortSignal;
}

export interface BytesAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** The connection is ours from then on; `takeOver` writes everything itself, the status line first. */
export interface UpgradeAnswer {
  readonly status: 101;
  takeOver(connection: Duplex, head: Buffer): void;
}

export type SubresourceAnswer = BytesAnswer | UpgradeAnswer;
export type SubresourceHandler = (request: SubresourceRequest) => Promise<SubresourceAnswer>;

export function jsonAnswer(status: number, value: unknown): BytesAnswer {
  return { status, contentType: 'application/json', body: Buffer.from(JSON.stringify(value)) };
}

/** Success of a verb that has nothing to tell. */
export function emptyAnswer(status: number): BytesAnswer {
  return { status, contentType: 'application/json', body: Buffer.alloc(0) };
}

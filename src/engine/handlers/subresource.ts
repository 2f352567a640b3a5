/**
 * Subresources that are not part of an object: pods/log, pods/eviction, serviceaccounts/token. Each is a table of
 * handlers by verb; core.ts lists them, and the kind names them in `extraSubresources` for discovery.
 */
import type { Call } from '#engine/handlers/call.ts';
import type { ApiResponse } from '#engine/request/request.ts';

export type Handler = (call: Call) => ApiResponse | Promise<ApiResponse>;

/** Handlers by the verb of the request: get, create, update, patch, delete. */
export type SubresourceHandlers = Readonly<Partial<Record<string, Handler>>>;

/** Handlers by name, such as `pods/eviction`. */
export type Subresources = Readonly<Record<string, SubresourceHandlers>>;

/**
 * Subresources that are not an object's own part: pods/log, pods/eviction, serviceaccounts/token. Each is a table of
 * handlers by verb, made with what it needs; core.ts lists them, and the kind names them in `extraSubresources` for
 * discovery.
 */
import type { Call } from '#engine/handlers/call.ts';
import type { ApiResponse } from '#engine/request.ts';

export type Handler = (call: Call) => ApiResponse | Promise<ApiResponse>;

/** By the verb of the request: get, create, update, patch, delete. */
export type SubresourceHandlers = Readonly<Partial<Record<string, Handler>>>;

/** `pods/eviction` → its handlers. */
export type Subresources = Readonly<Record<string, SubresourceHandlers>>;

/** The API groups and versions of aggregated API servers (APIService), and how requests reach them. */
import type { DiscoveredVersion } from '#engine/discovery/discovered-version.ts';
import type { RemoteOpenApi } from '#engine/openapi/remote-v2.ts';
import type { ApiHandler } from '#engine/request/request.ts';

/** One group and version of an aggregated API server, as discovery and OpenAPI show it. */
export interface RemoteVersion extends DiscoveredVersion, RemoteOpenApi {}

/** The Available condition, without its time. */
export interface Availability {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface Aggregation {
  /**
   * Returns the handler of a group and version that another server serves, or undefined if there is none. Never throws.
   */
  find(group: string, version: string): ApiHandler | undefined;
  /** Changes with `versions`. */
  readonly generation: number;
  readonly versions: readonly RemoteVersion[];
  /** Checks the server of the named APIService. Undefined if the APIService does not exist or is local. */
  check(name: string, options: { signal: AbortSignal }): Promise<Availability | undefined>;
}

export const noAggregation: Aggregation = {
  find: () => undefined,
  generation: 0,
  versions: [],
  check: async () => undefined,
};

/** Groups and versions that are served by others (APIService): who they are, and how requests reach them. */
import type { ApiResourceDiscovery } from '#engine/discovery/aggregated.ts';
import type { SwaggerDocument } from '#engine/openapi/v2.ts';
import type { ApiHandler } from '#engine/request.ts';

/** One group and version of somebody else, as discovery and OpenAPI show it. */
export interface RemoteVersion {
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  readonly resources: readonly ApiResourceDiscovery[];
  /** Stale: its server did not answer the last time, and `resources` are from before. */
  readonly freshness: 'Current' | 'Stale';
  /** The hash of its OpenAPI v3 document; undefined where it has none. */
  readonly openApiV3Hash: string | undefined;
  /** Its paths, and the definitions that they need. */
  readonly openApiV2: Pick<SwaggerDocument, 'paths' | 'definitions'> | undefined;
}

/** The Available condition, but for its time. */
export interface Availability {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface Aggregation {
  /** Whoever serves this group and version instead of the engine; undefined = nobody. Never throws. */
  find(group: string, version: string): ApiHandler | undefined;
  /** Changes with `versions`. */
  readonly generation: number;
  readonly versions: readonly RemoteVersion[];
  /** Asks whoever serves this APIService, given by its name; undefined = there is no such one, or we serve it. */
  check(name: string, options: { signal: AbortSignal }): Promise<Availability | undefined>;
}

export const noAggregation: Aggregation = {
  find: () => undefined,
  generation: 0,
  versions: [],
  check: async () => undefined,
};

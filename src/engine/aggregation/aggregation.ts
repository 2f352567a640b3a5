/** Groups and versions that are served by others (APIService): who they are, and how requests reach them. */
import type { ApiHandler } from '#engine/request.ts';

export interface Aggregation {
  /** Whoever serves this group and version instead of the engine; undefined = nobody. Never throws. */
  find(group: string, version: string): ApiHandler | undefined;
}

export const noAggregation: Aggregation = { find: () => undefined };

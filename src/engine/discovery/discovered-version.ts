/** One group and version of an aggregated API server, as discovery shows it. */

export interface ResponseKind {
  group: string;
  version: string;
  kind: string;
}

export interface ApiResourceDiscovery {
  resource: string;
  responseKind: ResponseKind;
  scope: 'Namespaced' | 'Cluster';
  singularResource: string;
  verbs: readonly string[];
  shortNames?: readonly string[];
  categories?: readonly string[];
  subresources?: { subresource: string; responseKind: ResponseKind; verbs: readonly string[] }[];
}

export interface DiscoveredVersion {
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  readonly resources: readonly ApiResourceDiscovery[];
  /** Stale: the server did not respond the last time, and `resources` are from before. */
  readonly freshness: 'Current' | 'Stale';
}

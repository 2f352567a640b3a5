/**
 * The discovery documents of one generation of kinds, each built on first use. The owner creates a new instance when
 * the kinds change. HTTP semantics (status, If-None-Match, compression) belong to the caller.
 */
import type { DiscoveredVersion } from '#engine/discovery/discovered-version.ts';
import { aggregatedDiscovery } from '#engine/discovery/aggregated.ts';
import { apiGroup, apiGroupList, apiVersions } from '#engine/discovery/api-groups.ts';
import { apiResourceList } from '#engine/discovery/api-resources.ts';
import { discoveryContentType, negotiateDiscovery } from '#engine/discovery/negotiate-discovery.ts';
import { jsonDocument, type ServedDocument } from '#engine/discovery/served-document.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { compareText } from '#lib/text/compare-text.ts';

export class DiscoveryDocuments {
  readonly #resources: readonly Resource[];
  readonly #serverAddress: string;
  readonly #remote: readonly DiscoveredVersion[];
  /** Bounded by the number of served documents: missing paths are not cached. */
  readonly #documents = new Map<string, ServedDocument>();

  /**
   * `remote` lists the versions of aggregated API servers, which serve their own documents at /apis/<group>/<version>.
   */
  constructor(resources: readonly Resource[], serverAddress: string, remote: readonly DiscoveredVersion[] = []) {
    this.#remote = remote;
    this.#resources = resources;
    this.#serverAddress = serverAddress;
  }

  /**
   * Returns the document at `/`, `/api`, `/api/v1`, `/apis`, `/apis/<group>` or `/apis/<group>/<version>`, or undefined
   * (404).
   */
  find(path: string, accept: string): ServedDocument | undefined {
    const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
    const root = trimmed === '/api' || trimmed === '/apis' ? trimmed : undefined;
    const version = root === undefined ? 'plain' : negotiateDiscovery(accept);
    const key = version === 'plain' ? trimmed : `${version} ${trimmed}`;
    const known = this.#documents.get(key);
    if (known !== undefined) return known;
    const value =
      root === undefined || version === 'plain'
        ? this.#plain(trimmed)
        : aggregatedDiscovery(this.#resources, root, version, this.#remote);
    if (value === undefined) return undefined;
    const document = jsonDocument(value, discoveryContentType(version));
    this.#documents.set(key, document);
    return document;
  }

  #plain(path: string): object | undefined {
    if (path === '/') return rootPaths([...this.#resources, ...this.#remote]);
    if (path === '/api') return apiVersions(this.#serverAddress);
    if (path === '/apis') return apiGroupList(this.#resources, this.#remote);
    const [, prefix, first = '', second, ...rest] = path.split('/');
    if (rest.length > 0 || first === '') return undefined;
    if (prefix === 'api') return second === undefined ? apiResourceList(this.#resources, '', first) : undefined;
    if (prefix !== 'apis') return undefined;
    if (second !== undefined) return apiResourceList(this.#resources, first, second);
    return apiGroup(this.#resources, first, this.#remote);
  }
}

const FIXED: readonly string[] = [
  '/api',
  '/apis',
  '/apis/',
  '/healthz',
  '/livez',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/readyz',
  '/version',
];

/** Returns the index at `/`: all paths that are not resources. */
export function rootPaths(served: readonly Pick<Resource, 'group' | 'version'>[]): { paths: string[] } {
  const paths = new Set(FIXED);
  for (const { group, version } of served) {
    if (group === '') {
      paths.add(`/api/${version}`);
    } else {
      paths.add(`/apis/${group}`);
      paths.add(`/apis/${group}/${version}`);
    }
  }
  return { paths: [...paths].sort(compareText) };
}

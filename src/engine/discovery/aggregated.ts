/** Aggregated discovery: all groups, versions and resources below /api or /apis in one document. */
import { groupsOf, type VersionOfGroup } from '#engine/discovery/group-order.ts';
import type { DiscoveryVersion } from '#engine/discovery/negotiate-discovery.ts';
import type { ApiResourceDiscovery, DiscoveredVersion, ResponseKind } from '#engine/discovery/discovered-version.ts';
import { subresourcesOf, orderedVerbs } from '#engine/discovery/subresources.ts';
import type { Resource } from '#engine/registry/resource.ts';

interface ApiGroupDiscovery {
  metadata: { name?: string; creationTimestamp: null };
  versions: { version: string; resources: readonly ApiResourceDiscovery[]; freshness: 'Current' | 'Stale' }[];
}

interface ApiGroupDiscoveryList {
  kind: 'APIGroupDiscoveryList';
  apiVersion: string;
  metadata: Record<string, never>;
  items: ApiGroupDiscovery[];
}

/** `root` is the requested path: /api contains only the core group, /apis all others. */
export function aggregatedDiscovery(
  resources: readonly Resource[],
  root: '/api' | '/apis',
  version: DiscoveryVersion,
  remote: readonly DiscoveredVersion[] = [],
): ApiGroupDiscoveryList {
  const groups = groupsOf(resources, remote).filter((group) => (group.name === '') === (root === '/api'));
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(({ name, versions }) => ({
      metadata: { ...(name === '' ? {} : { name }), creationTimestamp: null },
      versions: versions.map(describeVersion),
    })),
  };
}

function describeVersion({ version, resources, remote }: VersionOfGroup): ApiGroupDiscovery['versions'][number] {
  if (remote !== undefined) return { version, resources: remote.resources, freshness: remote.freshness };
  return { version, resources: resources.map(describeResource), freshness: 'Current' };
}

function describeResource(resource: Resource): ApiResourceDiscovery {
  const { plural, singular, kind, namespaced, shortNames, categories } = resource;
  const subresources = subresourcesOf(resource).map((sub) => ({
    subresource: sub.name,
    responseKind:
      sub.group === undefined
        ? ownKind(resource, sub.kind)
        : { group: sub.group, version: sub.version ?? '', kind: sub.kind },
    verbs: sub.verbs,
  }));
  return {
    resource: plural,
    responseKind: ownKind(resource, kind),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: orderedVerbs(resource),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}

/** Built-in kinds leave group and version empty, meaning those of the document; custom kinds name them. */
function ownKind({ builtIn, group, version }: Resource, kind: string): ResponseKind {
  return builtIn ? { group: '', version: '', kind } : { group, version, kind };
}

/** Plain discovery of groups: /api, /apis and /apis/<group>. */
import type { DiscoveredVersion } from '#engine/discovery/discovered-version.ts';
import { groupNamed, groupsOf, type Group } from '#engine/discovery/group-order.ts';
import type { Resource } from '#engine/registry/resource.ts';

interface ApiVersions {
  kind: 'APIVersions';
  versions: string[];
  serverAddressByClientCIDRs: { clientCIDR: string; serverAddress: string }[];
}

interface GroupVersionForDiscovery {
  groupVersion: string;
  version: string;
}

interface ApiGroup {
  name: string;
  versions: GroupVersionForDiscovery[];
  preferredVersion: GroupVersionForDiscovery;
}

interface ApiGroupList {
  kind: 'APIGroupList';
  apiVersion: 'v1';
  groups: ApiGroup[];
}

/** `serverAddress` is host:port as clients reach it. */
export function apiVersions(serverAddress: string): ApiVersions {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  };
}

export function apiGroupList(resources: readonly Resource[], remote: readonly DiscoveredVersion[] = []): ApiGroupList {
  const named = groupsOf(resources, remote).filter((group) => group.name !== '');
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: named.map(describe) };
}

/** Returns undefined if the group does not exist. */
export function apiGroup(
  resources: readonly Resource[],
  name: string,
  remote: readonly DiscoveredVersion[] = [],
): ({ kind: 'APIGroup'; apiVersion: 'v1' } & ApiGroup) | undefined {
  const group = name === '' ? undefined : groupNamed(resources, name, remote);
  return group === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...describe(group) };
}

function describe({ name, versions }: Group): ApiGroup {
  const listed = versions.map(({ version }) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: listed, preferredVersion: listed[0]! };
}

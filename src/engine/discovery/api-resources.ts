/** Plain discovery of one version: /api/v1 and /apis/<group>/<version>. */
import { createHash } from 'node:crypto';
import { resourcesIn } from '#engine/discovery/group-order.ts';
import { subresourcesOf, orderedVerbs } from '#engine/discovery/subresources.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { apiVersionOf } from '#kube/meta.ts';

interface ApiResource {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: readonly string[];
  shortNames?: readonly string[];
  categories?: readonly string[];
  storageVersionHash?: string;
}

interface ApiResourceList {
  kind: 'APIResourceList';
  /** Absent for the core group, as in kube-apiserver. */
  apiVersion?: 'v1';
  groupVersion: string;
  resources: ApiResource[];
}

/** Returns undefined if the version does not exist. */
export function apiResourceList(
  resources: readonly Resource[],
  group: string,
  version: string,
): ApiResourceList | undefined {
  const members = resourcesIn(resources, group, version);
  if (members === undefined) return undefined;
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' as const }),
    groupVersion: apiVersionOf({ group, version }),
    resources: members.flatMap(entriesOf),
  };
}

function entriesOf(resource: Resource): ApiResource[] {
  const { plural, singular, namespaced, kind, shortNames, categories } = resource;
  const own: ApiResource = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: orderedVerbs(resource),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(isStored(resource) ? { storageVersionHash: storageVersionHash(resource) } : {}),
  };
  const below = subresourcesOf(resource).map((sub) => ({
    name: `${plural}/${sub.name}`,
    singularName: '',
    namespaced,
    ...(sub.group === undefined ? {} : { group: sub.group, version: sub.version }),
    kind: sub.kind,
    verbs: sub.verbs,
  }));
  return [own, ...below];
}

/** Reviews and the like are not stored. */
const isStored = ({ verbs }: Resource) => verbs.includes('watch');

/** Computes the hash like kube-apiserver, because storage migrators compare it between servers. */
function storageVersionHash({ group, storageVersion, kind }: Resource): string {
  const digest = createHash('sha256').update(`${group}/${storageVersion}/${kind}`).digest();
  return digest.subarray(0, 8).toString('base64');
}

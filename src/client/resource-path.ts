/** Builds URL paths from a ResourceType. */
import { groupResource } from '#kube/meta.ts';
import type { ResourceType } from '#kube/meta.ts';

/** Returns `/apis/apps/v1/namespaces/x/deployments`; without a namespace, the path for all namespaces. */
export function collectionPath(type: ResourceType, namespace?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  if (!type.namespaced || namespace === undefined) return `${root}/${type.plural}`;
  return `${root}/namespaces/${segment(type, namespace)}/${type.plural}`;
}

export function objectPath(
  type: ResourceType,
  { namespace, name, subresource }: { namespace?: string | undefined; name: string; subresource?: string | undefined },
): string {
  const object = `${collectionPath(type, requireNamespace(type, namespace))}/${segment(type, name)}`;
  return subresource === undefined ? object : `${object}/${subresource.split('/').map(encodeURIComponent).join('/')}`;
}

/** Returns the namespace, which is required to address an object of a namespaced kind. */
export function requireNamespace(type: ResourceType, namespace: string | undefined): string | undefined {
  if (!type.namespaced) return undefined;
  if (namespace === undefined || namespace === '') {
    throw new TypeError(`Cannot address one of ${groupResource(type)}: no namespace is given; pass one`);
  }
  return namespace;
}

/** Encodes a name. Refuses names that a URL would resolve to another path. */
function segment(type: ResourceType, text: string): string {
  if (text === '' || text === '.' || text === '..') {
    throw new TypeError(`Cannot address one of ${groupResource(type)}: ${JSON.stringify(text)} is not a name`);
  }
  return encodeURIComponent(text);
}

/** Where the API keeps a kind: URLs from a ResourceType. */
import { groupResource } from '#kube/meta.ts';
import type { ResourceType } from '#kube/meta.ts';

/** `/apis/apps/v1/namespaces/x/deployments`; without a namespace, those of all namespaces. */
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

/** One object of a namespaced kind cannot be addressed without its namespace. */
export function requireNamespace(type: ResourceType, namespace: string | undefined): string | undefined {
  if (!type.namespaced) return undefined;
  if (namespace === undefined || namespace === '') {
    throw new TypeError(`Cannot address one of ${groupResource(type)}: no namespace is given; expected one`);
  }
  return namespace;
}

/** Names never become other paths: what a URL would read as a step up or as nothing is refused. */
function segment(type: ResourceType, text: string): string {
  if (text === '' || text === '.' || text === '..') {
    throw new TypeError(`Cannot address one of ${groupResource(type)}: ${JSON.stringify(text)} is not a name`);
  }
  return encodeURIComponent(text);
}

/** Keys of objects in caches and queues: `namespace/name`, or `name` if the kind has no namespace. */
import type { ObjectName } from '#client/client.ts';
import type { KubeObject } from '#kube/meta.ts';

export function keyOf({ namespace, name }: ObjectName): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

export function objectKey({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return keyOf({ namespace: metadata.namespace, name: metadata.name ?? '' });
}

export function parseKey(key: string): ObjectName {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

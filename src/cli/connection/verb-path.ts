/** API paths of VMs, instances and their verbs. Pure. */
import { KUBEVIRT_GROUP, SUBRESOURCES_GROUP } from '#api/names.ts';

type Kind = 'virtualmachines' | 'virtualmachineinstances';

export function verbPath(kind: Kind, namespace: string, name: string, verb: string): string {
  return `/apis/${SUBRESOURCES_GROUP}/v1/${namedPath(kind, namespace, name)}/${verb}`;
}

export function vmPath(kind: Kind, namespace: string, name: string): string {
  return `/apis/${KUBEVIRT_GROUP}/v1/${namedPath(kind, namespace, name)}`;
}

/** Returns the path of a collection in one namespace, or in all. */
export function vmCollectionPath(kind: Kind, namespace?: string): string {
  const within = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  return `/apis/${KUBEVIRT_GROUP}/v1/${within}${kind}`;
}

function namedPath(kind: Kind, namespace: string, name: string): string {
  return `namespaces/${encodeURIComponent(namespace)}/${kind}/${encodeURIComponent(name)}`;
}

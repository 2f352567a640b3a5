/** API paths of VMs, instances and their verbs. Pure. */
import { KUBEVIRT_GROUP, SUBRESOURCES_GROUP } from '#api/names.ts';

type Kind = 'virtualmachines' | 'virtualmachineinstances';

export function verbPath(kind: Kind, namespace: string, name: string, verb: string): string {
  return `/apis/${SUBRESOURCES_GROUP}/v1/${named(kind, namespace, name)}/${verb}`;
}

export function objectPath(kind: Kind, namespace: string, name: string): string {
  return `/apis/${KUBEVIRT_GROUP}/v1/${named(kind, namespace, name)}`;
}

/** Those of one namespace, or of all. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const within = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  return `/apis/${KUBEVIRT_GROUP}/v1/${within}${kind}`;
}

function named(kind: Kind, namespace: string, name: string): string {
  return `namespaces/${encodeURIComponent(namespace)}/${kind}/${encodeURIComponent(name)}`;
}

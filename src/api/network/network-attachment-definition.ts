/**
 * NetworkAttachmentDefinitions of the Network Plumbing Working Group, which Multus uses as well: a CNI configuration
 * with a name, for secondary networks of VMs.
 */
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';

interface NetworkAttachmentDefinition extends KubeObject {
  spec?: { config?: string };
}

export const NETWORK_ATTACHMENT_DEFINITIONS: ResourceType<NetworkAttachmentDefinition> = {
  group: 'k8s.cni.cncf.io',
  version: 'v1',
  kind: 'NetworkAttachmentDefinition',
  plural: 'network-attachment-definitions',
  namespaced: true,
};

interface DefinitionPlace {
  readonly namespace: string;
  readonly name: string;
}

/** The namespace whose definitions VMs of all namespaces may use. */
const SHARED_DEFINITIONS_NAMESPACE = 'default';

/**
 * Returns the places at which a VM's `networkName` is looked up: `name` in its own namespace, then in the shared one;
 * `namespace/name` only there. Returns undefined for a namespace that the VM may not use.
 */
export function definitionPlaces(networkName: string, namespace: string): readonly DefinitionPlace[] | undefined {
  const [first = '', second] = networkName.split('/');
  if (second === undefined) {
    const places = [...new Set([namespace, SHARED_DEFINITIONS_NAMESPACE])];
    return places.map((place) => ({ namespace: place, name: first }));
  }
  return first === namespace || first === SHARED_DEFINITIONS_NAMESPACE
    ? [{ namespace: first, name: second }]
    : undefined;
}

/** Reports whether a `networkName` is well-formed: the name of a definition, or `namespace/name`. */
export function isDefinitionName(text: string): boolean {
  const parts = text.split('/');
  return parts.length <= 2 && parts.every((part) => nameErrors('subdomain', part).length === 0);
}

/** Returns what is wrong with a `networkName` that names a namespace that the VM may not use; otherwise undefined. */
export function findForeignNamespace(networkName: string, namespace: string): string | undefined {
  if (definitionPlaces(networkName, namespace) !== undefined) return undefined;
  const usable = [...new Set([namespace, SHARED_DEFINITIONS_NAMESPACE])].map((name) => JSON.stringify(name));
  return `must be in the namespace of the VM or in "${SHARED_DEFINITIONS_NAMESPACE}": expected a name in ${usable.join(' or ')}`;
}

/**
 * The message about a network without a NetworkAttachmentDefinition: conditions of VMs and waiting starts have the same.
 * It shows the definition to write, because VMs of earlier versions named a bridge of the host instead. Pure.
 */
import {
  definitionPlaces,
  findForeignNamespace,
  NETWORK_ATTACHMENT_DEFINITIONS,
} from '#api/network/network-attachment-definition.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';

/** The condition of VMs, and the reason of a start that waits. */
export const DEFINITION_MISSING = 'NetworkDefinitionMissing';

/** Linux' rule for names of devices; a longer name cannot be that of a bridge. */
const DEVICE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;
const PLACEHOLDER_BRIDGE = 'br0';
/** Of these a name may consist, and be printed without quotation marks in YAML. */
const NOT_IN_NAMES = /[^a-z0-9.-]+/g;

export function describeMissingDefinition(networkName: string, namespace: string): string {
  const foreign = findForeignNamespace(networkName, namespace);
  if (foreign !== undefined) return `Network name ${JSON.stringify(networkName)} ${foreign}`;
  const [place = { namespace, name: networkName }, ...others] = definitionPlaces(networkName, namespace) ?? [];
  const example = definitionExample(place.namespace, nameFor(place.name), place.name);
  if (nameErrors('subdomain', place.name).length > 0) {
    const name = nameFor(place.name);
    return `Network name ${JSON.stringify(networkName)} cannot be the name of a NetworkAttachmentDefinition; create one with another name, for example "${name}" for the bridge of this name, and set multus.networkName to that name: ${example}`;
  }
  const names = [place, ...others].map((one) => `"${one.namespace}/${one.name}"`).join(' or ');
  return `There is no NetworkAttachmentDefinition ${names}; a cluster administrator must create it. For a bridge of the nodes: ${example}`;
}

/** Returns the definition of a network on a bridge of the nodes as one line of YAML. */
function definitionExample(namespace: string, name: string, bridge: string): string {
  const { kind } = NETWORK_ATTACHMENT_DEFINITIONS;
  const config = bridgeConfig(name, DEVICE.test(bridge) ? bridge : PLACEHOLDER_BRIDGE);
  return `{apiVersion: ${apiVersionOf(NETWORK_ATTACHMENT_DEFINITIONS)}, kind: ${kind}, metadata: {namespace: ${JSON.stringify(namespace)}, name: ${JSON.stringify(name)}}, spec: {config: '${config}'}}`;
}

/** Returns the CNI configuration of a plain layer-2 connection to an existing bridge. */
function bridgeConfig(name: string, bridge: string): string {
  return JSON.stringify({ cniVersion: '1.0.0', name, type: 'bridge', bridge });
}

/** Returns a name for a definition, as close as possible to the name of a bridge. */
function nameFor(text: string): string {
  const name = text.toLowerCase().replaceAll(NOT_IN_NAMES, '-').replaceAll(/^[-.]+|[-.]+$/g, ''); // prettier-ignore
  return nameErrors('subdomain', name).length === 0 ? name : 'lan';
}

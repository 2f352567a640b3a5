import { findForeignNamespace, isDefinitionName } from '#api/network/network-attachment-definition.ts';
import { checkNames, listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { Network } from '#api/domain/interface.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { IpAddressError, parseIpNetwork } from '#lib/ip-address.ts';

/** A prefix of a private network: the guest needs two addresses besides the first and the last one. */
const CIDR_PREFIXES = { vmNetworkCIDR: { family: 4, max: 29 }, vmIPv6NetworkCIDR: { family: 6, max: 125 } } as const;

/**
 * Checks networks: each needs an interface of its name. Several pod networks are allowed; the first connects the guest
 * with others.
 */
export function checkNetworks({ domain, networks = [] }: VmiSpec, path: string): FieldError[] {
  const field = `${path}.networks`;
  const used = new Set((domain.devices?.interfaces ?? []).map(({ name }) => name));
  const errors = checkNames(networks, field);
  for (const [i, network] of networks.entries()) {
    const at = `${field}[${i}]`;
    const sources = listSetKeys(network, ['pod', 'multus']);
    if (sources.length > 1) errors.push(forbiddenField(at, 'only one of pod, multus may be set'));
    // An unknown source has been refused by its name already.
    if (Object.keys(network).every((key) => key === 'name')) {
      errors.push(requiredValue(at, 'one of pod, multus must be set'));
    }
    const definition = network.multus?.networkName;
    if (definition !== undefined && !isDefinitionName(definition)) {
      const text = 'must be the name of a NetworkAttachmentDefinition, or <namespace>/<name>';
      errors.push(invalidValue(`${at}.multus.networkName`, definition, text));
    }
    errors.push(...checkCidrs(network, at));
    if (used.has(network.name)) continue;
    const text = `there is no interface with this name in ${path}.domain.devices.interfaces`;
    errors.push(invalidValue(`${at}.name`, network.name, text));
  }
  return errors;
}

/** Checks that definitions are in the namespace of the VM or in the shared one; undefined: the namespace is not known. */
export function checkNetworkNamespaces(
  spec: Pick<VmiSpec, 'networks'> | undefined,
  path: string,
  namespace: string | undefined,
): FieldError[] {
  if (namespace === undefined) return [];
  return (spec?.networks ?? []).flatMap(({ multus }, i) => {
    const name = multus?.networkName;
    const problem = name === undefined || !isDefinitionName(name) ? undefined : findForeignNamespace(name, namespace);
    return problem === undefined ? [] : [invalidValue(`${path}.networks[${i}].multus.networkName`, name, problem)];
  });
}

function checkCidrs({ pod = {} }: Network, path: string): FieldError[] {
  return (['vmNetworkCIDR', 'vmIPv6NetworkCIDR'] as const).flatMap((field) => {
    const text = pod[field];
    const why = text ? findCidrError(text, CIDR_PREFIXES[field]) : undefined;
    return why === undefined ? [] : [invalidValue(`${path}.pod.${field}`, text, why)];
  });
}

function findCidrError(text: string, { family, max }: { family: 4 | 6; max: number }): string | undefined {
  try {
    const { address, prefix } = parseIpNetwork(text);
    if (address.family !== family) return `must be an IPv${family} network`;
    return prefix > max ? `must have a prefix length of at most ${max}` : undefined;
  } catch (error) {
    if (error instanceof IpAddressError) return error.message;
    throw error;
  }
}

import { checkNames, listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

/** Valid names of network devices in Linux. */
const BRIDGE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;

/**
 * Checks networks: each needs an interface of its name. Several pod networks are allowed: each is a separate user-mode
 * network.
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
    const bridge = network.multus?.networkName;
    if (bridge !== undefined && !BRIDGE.test(bridge)) {
      errors.push(invalidValue(`${at}.multus.networkName`, bridge, 'must be the name of a bridge on the node'));
    }
    if (used.has(network.name)) continue;
    const text = `there is no interface with this name in ${path}.domain.devices.interfaces`;
    errors.push(invalidValue(`${at}.name`, network.name, text));
  }
  return errors;
}

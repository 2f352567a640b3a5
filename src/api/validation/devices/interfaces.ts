/** Checks interfaces: each needs a network of its name and a binding that the network supports. */
import type { Interface, Network } from '#api/domain/interface.ts';
import { checkNames, listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

const BINDINGS = ['masquerade', 'bridge'] as const;
const MAC = /^[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}$/i;
/** Limited by the I/O ports of a guest (node/definition/devices/interface.ts). */
const MAX_E1000E = 8;

export function checkInterfaces({ domain, networks = [] }: VmiSpec, path: string): FieldError[] {
  const interfaces = domain.devices?.interfaces ?? [];
  const field = `${path}.domain.devices.interfaces`;
  const byName = new Map(networks.map((network) => [network.name, network]));
  const errors = checkNames(interfaces, field);
  for (const [i, nic] of interfaces.entries()) {
    const at = `${field}[${i}]`;
    const network = byName.get(nic.name);
    if (network === undefined) {
      errors.push(invalidValue(`${at}.name`, nic.name, `there is no network with this name in ${path}.networks`));
    }
    if ((nic.ports ?? []).length > 0 && nic.masquerade === undefined) {
      errors.push(forbiddenField(`${at}.ports`, 'only possible with masquerade; other guests have all their ports'));
    }
    errors.push(...checkBinding(nic, network, at), ...checkMac(nic.macAddress, `${at}.macAddress`));
  }
  return [...errors, ...checkDuplicateMacs(interfaces, field), ...checkE1000eCount(interfaces, field)];
}

function checkBinding(nic: Interface, network: Network | undefined, path: string): FieldError[] {
  const bindings = listSetKeys(nic, BINDINGS);
  if (bindings.length > 1) return [forbiddenField(path, `only one of ${bindings.join(', ')} may be set`)];
  const [binding] = bindings;
  if (binding === undefined) return [requiredValue(path, 'one of masquerade, bridge must be set')];
  if (binding === 'masquerade' && network?.multus !== undefined) {
    return [forbiddenField(`${path}.masquerade`, 'only possible with a pod network')];
  }
  return [];
}

function checkMac(mac: string | undefined, field: string): FieldError[] {
  if (mac === undefined || mac === '') return [];
  if (!MAC.test(mac)) return [invalidValue(field, mac, 'must be a MAC address (e.g. 02:00:00:12:34:56)')];
  if ((Number.parseInt(mac.slice(0, 2), 16) & 1) === 1) {
    return [invalidValue(field, mac, 'must be a unicast MAC address: the first byte must be even')];
  }
  return /^[0:-]+$/.test(mac) ? [invalidValue(field, mac, 'must not be zero')] : [];
}

function checkDuplicateMacs(interfaces: readonly Interface[], path: string): FieldError[] {
  const seen = new Set<string>();
  return interfaces.flatMap(({ macAddress }, i) => {
    const mac = macAddress?.toLowerCase().replaceAll('-', ':');
    if (mac === undefined || mac === '') return [];
    if (seen.has(mac)) return [duplicateValue(`${path}[${i}].macAddress`, macAddress)];
    seen.add(mac);
    return [];
  });
}

function checkE1000eCount(interfaces: readonly Interface[], path: string): FieldError[] {
  const ninth = interfaces.flatMap(({ model }, i) => (model === 'e1000e' ? [i] : []))[MAX_E1000E];
  if (ninth === undefined) return [];
  return [
    invalidValue(
      `${path}[${ninth}].model`,
      'e1000e',
      `a guest can have at most ${MAX_E1000E} interfaces of this model`,
    ),
  ];
}

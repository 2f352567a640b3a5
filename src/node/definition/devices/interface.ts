/** Defines network interfaces and their backends. */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { vcpusOf } from '#api/domain/cpu.ts';
import { isConventional, type Interface, type Network } from '#api/domain/interface.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import { defineAttachment, type NetworkFacts } from '#node/definition/devices/attachment.ts';
import { checkDeviceNames } from '#node/definition/devices/device-name.ts';
import type { Device, DomainDefinition, InterfaceBackend, InterfaceDevice } from '#node/hardware/domain-definition.ts';

const FIELD = 'spec.domain.devices.interfaces';
const MAC = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}$/;
/** Linux' rule for names of interfaces. The name is passed to commands on the node. */
const BRIDGE = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;

/**
 * The maximum number of e1000e interfaces. Each takes a window of 4 KiB of the 64 KiB of I/O ports. With 15 of them,
 * SeaBIOS fails before it boots, and OVMF ignores the tenth (measured). Virtio interfaces take none.
 */
const MAX_E1000E = 8;
const NO_ROOM = `a guest can have at most ${MAX_E1000E} interfaces of this model`;

interface InterfaceContext {
  /** The uid of the VM, or of an instance without a VM, from which MAC addresses are derived. */
  readonly ownerUid: string;
  readonly layout: Layout;
  /** The number of queues of interfaces that support several. */
  readonly queues?: number | undefined;
  /** The networks of the instance on this node; undefined if guests have no namespaces here. */
  readonly network?: NetworkFacts | undefined;
}

/** Defines the interfaces that are in the guest. Absent ones only keep their place. */
export function defineInterfaces(
  spec: VmiSpec,
  context: InterfaceContext,
  problems: FieldError[],
): UnplacedDevice<InterfaceDevice>[] {
  const interfaces = interfacesOf(spec);
  problems.push(
    ...checkDeviceNames(
      interfaces.map(({ name }) => name),
      FIELD,
    ),
  );
  const present = interfaces.flatMap((item, i) => (item.state === 'absent' ? [] : [{ item, field: `${FIELD}[${i}]` }]));
  const ninth = present.filter(({ item }) => item.model === 'e1000e')[MAX_E1000E];
  if (ninth !== undefined) problems.push(invalidValue(`${ninth.field}.model`, 'e1000e', NO_ROOM));
  return present.map(({ item, field }) => defineInterface(item, field, networksOf(spec), context, problems));
}

/** Defines one interface. */
export function defineInterface(
  item: Interface,
  field: string,
  networks: readonly Network[],
  { ownerUid, layout, queues, network: facts }: InterfaceContext,
  problems: FieldError[],
): UnplacedDevice<InterfaceDevice> {
  const network = networks.find(({ name }) => name === item.name);
  const model = item.model ?? 'virtio';
  if (isConventional(model) && layout.hasPorts && item.pciAddress) {
    const detail = `an interface of the model ${model} is on the root bus, where its address cannot be chosen`;
    problems.push(forbiddenField(`${field}.pciAddress`, detail));
  }
  const backend = defineBackend(item, network, { networks, facts }, field, problems);
  const device: InterfaceDevice = {
    type: 'interface',
    id: `nic-${item.name}`,
    name: item.name,
    model,
    macAddress: parseMac(item, ownerUid, field, problems),
    backend,
    ...(queues !== undefined && model === 'virtio' && backend.type !== 'user' && { queues }),
    ...(item.acpiIndex !== undefined && { acpiIndex: item.acpiIndex }),
    ...(item.state === 'down' && { link: 'down' }),
    ...(item.bootOrder !== undefined && { bootOrder: item.bootOrder }),
  };
  return { device, field, pciAddress: item.pciAddress };
}

function parseMac({ name, macAddress }: Interface, ownerUid: string, field: string, problems: FieldError[]): string {
  if (macAddress === undefined || macAddress === '') return deriveMac(ownerUid, name);
  const mac = macAddress.toLowerCase();
  const isUnicast = (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0;
  if (!MAC.test(mac) || !isUnicast) {
    problems.push(invalidValue(`${field}.macAddress`, macAddress, 'is not a valid MAC address of an interface'));
  }
  return mac.replaceAll('-', ':');
}

function defineBackend(
  item: Interface,
  network: Network | undefined,
  context: { readonly networks: readonly Network[]; readonly facts: NetworkFacts | undefined },
  field: string,
  problems: FieldError[],
): InterfaceBackend {
  const { name, masquerade, bridge } = item;
  const user: InterfaceBackend = { type: 'user' };
  if (network === undefined) {
    problems.push(invalidValue(`${field}.name`, name, 'there is no network of this name'));
    return user;
  }
  if (masquerade !== undefined && bridge !== undefined) {
    problems.push(forbiddenField(`${field}.bridge`, 'may not be set together with masquerade'));
  }
  if (masquerade !== undefined && network.multus !== undefined) {
    problems.push(forbiddenField(`${field}.masquerade`, 'needs the pod network'));
  }
  const { facts, networks } = context;
  if (facts !== undefined) return defineAttachment(item, network, { networks, facts }, field, problems) ?? user;
  if (network.multus === undefined) {
    if (bridge !== undefined) problems.push(forbiddenField(`${field}.bridge`, 'needs a network namespace, and root'));
    return user;
  }
  const { networkName } = network.multus;
  if (!BRIDGE.test(networkName)) {
    problems.push(invalidValue('spec.networks', networkName, `is not a valid name of a bridge (network "${name}")`));
  }
  return { type: 'bridge', bridge: networkName };
}

/** Returns why a running guest cannot get this interface, or undefined if it can. */
export function checkInterfaceRoom({ id, model }: InterfaceDevice, { devices }: DomainDefinition): string | undefined {
  const others = devices.filter((other) => other.type === 'interface' && other.model === 'e1000e' && other.id !== id);
  return model === 'e1000e' && others.length >= MAX_E1000E ? NO_ROOM : undefined;
}

/** Returns the number of queues of a virtio interface that is not in user mode; undefined means one. */
export function interfaceQueues({ domain }: VmiSpec): number | undefined {
  const count = vcpusOf(domain);
  return domain.devices?.networkInterfaceMultiqueue === true && count > 1 ? count : undefined;
}

/** Returns a note about interfaces that have one queue although the spec asks for more. */
export function noteSingleQueues(spec: VmiSpec, devices: readonly Device[]): string[] {
  if (interfaceQueues(spec) === undefined) return [];
  const names = devices.flatMap((device) =>
    device.type === 'interface' && device.queues === undefined ? [device.name] : [],
  );
  if (names.length === 0) return [];
  return [`Only one queue for ${names.join(', ')}: multiple queues need a virtio interface that is not in user mode.`];
}

/** Network interfaces, and what they are plugged into. */
import { interfacesOf, networksOf } from '#api/attached-interfaces.ts';
import { derivedMac } from '#api/derived-mac.ts';
import { vcpusOf } from '#api/domain/cpu.ts';
import { isConventional, type Interface, type Network } from '#api/domain/interface.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import { nameProblems } from '#node/definition/devices/device-name.ts';
import type {
  Device,
  DomainDefinition,
  InterfaceBackend,
  InterfaceDevice,
} from '#node/definition/domain-definition.ts';

const FIELD = 'spec.domain.devices.interfaces';
const MAC = /^[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}$/;
/** As Linux takes them; the name goes to commands of the node. */
const BRIDGE = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;

/**
 * Each takes a window of 4 KiB in the 64 KiB of I/O ports. SeaBIOS gives up before it boots anything with 15 of them,
 * OVMF leaves the tenth out (measured); virtio interfaces take none.
 */
const MAX_E1000E = 8;
const NO_ROOM = `a guest has room for ${MAX_E1000E} of this model`;

interface InterfaceContext {
  /** The VM's, or the instance's own: what a made-up MAC address is derived from. */
  readonly ownerUid: string;
  readonly layout: Layout;
  /** Of those that can have more than one. */
  readonly queues?: number | undefined;
}

/** Those that are in the guest: absent ones only keep their place. */
export function defineInterfaces(
  spec: VmiSpec,
  context: InterfaceContext,
  problems: FieldError[],
): Unplaced<InterfaceDevice>[] {
  const interfaces = interfacesOf(spec);
  problems.push(
    ...nameProblems(
      interfaces.map(({ name }) => name),
      FIELD,
    ),
  );
  const present = interfaces.flatMap((item, i) => (item.state === 'absent' ? [] : [{ item, field: `${FIELD}[${i}]` }]));
  const ninth = present.filter(({ item }) => item.model === 'e1000e')[MAX_E1000E];
  if (ninth !== undefined) problems.push(invalidValue(`${ninth.field}.model`, 'e1000e', NO_ROOM));
  return present.map(({ item, field }) => defineInterface(item, field, networksOf(spec), context, problems));
}

/** One of them. */
export function defineInterface(
  item: Interface,
  field: string,
  networks: readonly Network[],
  { ownerUid, layout, queues }: InterfaceContext,
  problems: FieldError[],
): Unplaced<InterfaceDevice> {
  const network = networks.find(({ name }) => name === item.name);
  const model = item.model ?? 'virtio';
  if (isConventional(model) && layout.hasPorts && item.pciAddress) {
    const detail = `an interface of the model ${model} stands on the root bus, where the machine decides`;
    problems.push(forbiddenField(`${field}.pciAddress`, detail));
  }
  const backend = backendOf(item, network, field, problems);
  const device: InterfaceDevice = {
    type: 'interface',
    id: `nic-${item.name}`,
    name: item.name,
    model,
    macAddress: macOf(item, ownerUid, field, problems),
    backend,
    ...(queues !== undefined && model === 'virtio' && backend.type === 'bridge' && { queues }),
    ...(item.acpiIndex !== undefined && { acpiIndex: item.acpiIndex }),
    ...(item.state === 'down' && { link: 'down' }),
    ...(item.bootOrder !== undefined && { bootOrder: item.bootOrder }),
  };
  return { device, field, pciAddress: item.pciAddress };
}

function macOf({ name, macAddress }: Interface, ownerUid: string, field: string, problems: FieldError[]): string {
  if (macAddress === undefined || macAddress === '') return derivedMac(ownerUid, name);
  const mac = macAddress.toLowerCase();
  const isUnicast = (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0;
  if (!MAC.test(mac) || !isUnicast) {
    problems.push(invalidValue(`${field}.macAddress`, macAddress, 'is no MAC address of an interface'));
  }
  return mac.replaceAll('-', ':');
}

function backendOf(
  { name, masquerade, bridge }: Interface,
  network: Network | undefined,
  field: string,
  problems: FieldError[],
): InterfaceBackend {
  const user: InterfaceBackend = { type: 'user' };
  if (network === undefined) {
    problems.push(invalidValue(`${field}.name`, name, 'there is no network of this name'));
    return user;
  }
  if (masquerade !== undefined && bridge !== undefined) {
    problems.push(forbiddenField(`${field}.bridge`, 'may not be set together with masquerade'));
  }
  if (network.multus === undefined) {
    if (bridge !== undefined) problems.push(forbiddenField(`${field}.bridge`, 'needs a multus network'));
    return user;
  }
  if (masquerade !== undefined) problems.push(forbiddenField(`${field}.masquerade`, 'needs the pod network'));
  const { networkName } = network.multus;
  if (!BRIDGE.test(networkName)) {
    problems.push(invalidValue('spec.networks', networkName, `is no name of a bridge (network "${name}")`));
  }
  return { type: 'bridge', bridge: networkName };
}

/** Why a guest that runs cannot get this interface; undefined where it can. */
export function whyNoRoom({ id, model }: InterfaceDevice, { devices }: DomainDefinition): string | undefined {
  const others = devices.filter((other) => other.type === 'interface' && other.model === 'e1000e' && other.id !== id);
  return model === 'e1000e' && others.length >= MAX_E1000E ? NO_ROOM : undefined;
}

/** How many queues each virtio interface on a bridge has; undefined: one. */
export function interfaceQueues({ domain }: VmiSpec): number | undefined {
  const count = vcpusOf(domain);
  return domain.devices?.networkInterfaceMultiqueue === true && count > 1 ? count : undefined;
}

/** Those that have one queue although the spec wants more. */
export function leftQueues(spec: VmiSpec, devices: readonly Device[]): string[] {
  if (interfaceQueues(spec) === undefined) return [];
  const names = devices.flatMap((device) =>
    device.type === 'interface' && device.queues === undefined ? [device.name] : [],
  );
  if (names.length === 0) return [];
  return [`One queue only for ${names.join(', ')}: more are for virtio interfaces on a bridge.`];
}

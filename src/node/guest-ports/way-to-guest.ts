/**
 * How a port of a guest is reached from its node: through QEMU, where an interface of it is a network inside QEMU; else over
 * a bridge, at the address that the guest's agent tells. A guest may tell anything. So an address counts only where the
 * node itself has one in that network on that bridge: a guest cannot send the node elsewhere. Pure.
 */
import { isIPv4 } from 'node:net';
import type { DomainDefinition, InterfaceDevice } from '#node/definition/domain-definition.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';

/** An address of the node, as node:os tells it. */
export interface NodeAddress {
  readonly address: string;
  readonly netmask: string;
}
/** By the name of the device of the node. */
export type NodeNetworks = Readonly<Record<string, readonly NodeAddress[] | undefined>>;

export interface OverBridge {
  readonly is: 'bridge';
  readonly bridge: string;
  readonly address: string;
  /** Of the guest's interface: whoever answers has this one. */
  readonly mac: string;
  /** Of the node, in the same network. */
  readonly from: string;
}

export type Way = { readonly is: 'forward' } | OverBridge | { readonly is: 'none'; readonly why: string };

const OR_MASQUERADE = 'or give it an interface in user mode (masquerade)';

export function wayToGuest(
  { devices }: Pick<DomainDefinition, 'devices'>,
  said: readonly AgentInterface[] | undefined,
  networks: NodeNetworks,
): Way {
  const interfaces = devices.flatMap((device) => (device.type === 'interface' ? device : []));
  if (interfaces.some(({ backend }) => backend.type === 'user')) return { is: 'forward' };
  const told = interfaces.flatMap((nic) => addressesOf(nic, said));
  for (const way of told) {
    const from = networks[way.bridge]?.find((own) => isNeighbour(own, way.address));
    if (from !== undefined) return { ...way, is: 'bridge', from: from.address };
  }
  const [first] = told;
  if (first !== undefined) {
    const { address, bridge } = first;
    const why = `its address ${address} is in no network that its node has on the bridge "${bridge}"; reach it from a machine of that network, ${OR_MASQUERADE}`;
    return { is: 'none', why };
  }
  if (interfaces.length === 0) return { is: 'none', why: `it has no interface; give it one in user mode (masquerade)` };
  const why = `its interfaces are on bridges, and nobody tells an IPv4 address of it; run a guest agent (qemu-ga) in it, ${OR_MASQUERADE}`;
  return { is: 'none', why };
}

function addressesOf({ backend, macAddress: mac }: InterfaceDevice, said: readonly AgentInterface[] = []) {
  if (backend.type !== 'bridge') return [];
  const addresses = said.filter((entry) => entry.mac === mac).flatMap((entry) => entry.addresses);
  return addresses.filter((address) => isIPv4(address)).map((address) => ({ bridge: backend.bridge, address, mac }));
}

/** In the network of the node's own address, and not that one itself. */
function isNeighbour({ address: own, netmask }: NodeAddress, address: string): boolean {
  if (!isIPv4(own) || !isIPv4(netmask) || own === address) return false;
  const [mask, mine, other] = [netmask, own, address].map(numberOf) as [number, number, number];
  return (mine & mask) === (other & mask);
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => (sum << 8) | Number(part), 0);
}

/** Of /proc/net/arp: who has an address, as the node has found out. */
export function neighbourMac(table: string, { address, bridge }: Pick<OverBridge, 'address' | 'bridge'>): string {
  for (const line of table.split('\n')) {
    const [ip, , , mac = '', , device] = line.trim().split(/\s+/);
    if (ip === address && device === bridge) return mac.toLowerCase();
  }
  return '';
}

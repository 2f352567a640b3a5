/**
 * Decides how the node reaches a port of a guest: at the address of its pod; through QEMU if the guest has an interface
 * in user mode; else over a bridge at an address that the guest agent reports. A guest may report anything, so an address counts only if the node
 * itself has an address in that network on that bridge: the guest cannot direct the node elsewhere. Pure.
 */
import { isIPv4 } from 'node:net';
import { hostBridgesIn } from '#api/network/definition-config.ts';
import type { DomainDefinition, InterfaceBackend, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import type { PodNetwork } from '#node/network/pod-networks.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';

/** An address of the node, as returned by node:os. */
interface NodeAddress {
  readonly address: string;
  readonly netmask: string;
}
/** Addresses by network device of the node. */
export type NodeNetworks = Readonly<Record<string, readonly NodeAddress[] | undefined>>;

export interface BridgeRoute {
  readonly is: 'bridge';
  readonly bridge: string;
  readonly address: string;
  /** MAC address of the guest's interface, which the peer must have. */
  readonly mac: string;
  /** The node's own address in the same network. */
  readonly from: string;
}

export interface PodRoute {
  readonly is: 'pod';
  readonly address: string;
}

type GuestRoute = { readonly is: 'forward' } | PodRoute | BridgeRoute | { readonly is: 'none'; readonly why: string };

const OR_MASQUERADE = 'or add an interface in user mode (masquerade)';

export function findGuestRoute(
  { devices }: Pick<DomainDefinition, 'devices'>,
  reported: readonly AgentInterface[] | undefined,
  networks: NodeNetworks,
  pod?: PodNetwork,
): GuestRoute {
  const interfaces = devices.flatMap((device) => (device.type === 'interface' ? device : []));
  const [podAddress] = pod?.interfaces.flatMap(({ addresses }) => addresses) ?? [];
  if (podAddress !== undefined) return { is: 'pod', address: podAddress };
  if (interfaces.some(({ backend }) => backend.type === 'user')) return { is: 'forward' };
  const candidates = interfaces.flatMap((nic) => candidateAddresses(nic, reported));
  for (const candidate of candidates) {
    const from = networks[candidate.bridge]?.find((own) => isInNetworkOf(own, candidate.address));
    if (from !== undefined) return { ...candidate, is: 'bridge', from: from.address };
  }
  const [first] = candidates;
  if (first !== undefined) {
    const { address, bridge } = first;
    const why = `its node has no address in the network of ${address} on bridge "${bridge}"; connect from a machine in that network, ${OR_MASQUERADE}`;
    return { is: 'none', why };
  }
  if (interfaces.length === 0) return { is: 'none', why: `it has no interface; add one in user mode (masquerade)` };
  const why = `its interfaces are on bridges and its IPv4 address is unknown; run a guest agent (qemu-ga) in the guest, ${OR_MASQUERADE}`;
  return { is: 'none', why };
}

function candidateAddresses({ backend, macAddress: mac }: InterfaceDevice, reported: readonly AgentInterface[] = []) {
  const bridge = hostBridgeOf(backend);
  if (bridge === undefined) return [];
  const addresses = reported.filter((entry) => entry.mac === mac).flatMap((entry) => entry.addresses);
  return addresses.filter((address) => isIPv4(address)).map((address) => ({ bridge, address, mac }));
}

/** Returns the bridge of the node that the interface is connected with, in the same VLAN as the node itself. */
function hostBridgeOf(backend: InterfaceBackend): string | undefined {
  if (backend.type === 'bridge') return backend.bridge;
  if (backend.type !== 'pod' || backend.attachment.network.type !== 'cni') return undefined;
  return hostBridgesIn(backend.attachment.network.config).find(({ vlan }) => vlan === undefined)?.name;
}

/** Reports whether an address is in the network of the node's own address, and is not that address. */
function isInNetworkOf({ address: own, netmask }: NodeAddress, address: string): boolean {
  if (!isIPv4(own) || !isIPv4(netmask) || own === address) return false;
  const [mask, mine, other] = [netmask, own, address].map(toNumber) as [number, number, number];
  return (mine & mask) === (other & mask);
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => (sum << 8) | Number(part), 0);
}

/** Returns the MAC address of an address in /proc/net/arp, or '' if it is unknown. */
export function findNeighbourMac(table: string, { address, bridge }: Pick<BridgeRoute, 'address' | 'bridge'>): string {
  for (const line of table.split('\n')) {
    const [ip, , , mac = '', , device] = line.trim().split(/\s+/);
    if (ip === address && device === bridge) return mac.toLowerCase();
  }
  return '';
}

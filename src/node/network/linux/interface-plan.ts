/**
 * One interface of a guest with every name and address, computed from its request and from what is known about its
 * network. Rules, scripts and the configuration of DHCP are built from it alone. Pure.
 */
import { createHash } from 'node:crypto';
import {
  formatIpAddress,
  IpAddressError,
  networkContains,
  networkOf,
  parseInterfaceAddress,
  type IpAddress,
} from '#lib/ip-address.ts';
import { PodNetworkError, type TapRequest } from '#node/network/pod-networks.ts';

export interface InterfaceAddress {
  readonly address: IpAddress;
  readonly prefix: number;
}

/** An address that the guest has, and the one of the pod that others see; the same for the bridge binding. */
export interface GuestAddress {
  readonly guest: InterfaceAddress;
  readonly pod: IpAddress;
  /** The router of the guest, if its network has one. */
  readonly gateway?: IpAddress;
}

export interface InterfacePlan {
  readonly tap: string;
  readonly queues: number;
  readonly guestMac: string;
  readonly podInterface: string;
  /** The MAC address of the interface of the pod. */
  readonly podMac: string;
  readonly binding: 'masquerade' | 'bridge';
  /** The bridge in the namespace; only for the bridge binding. */
  readonly podBridge: string;
  readonly addresses: readonly GuestAddress[];
  readonly nameservers: readonly IpAddress[];
  readonly mtu: number;
  readonly ports?: readonly { readonly protocol: 'tcp' | 'udp'; readonly port: number }[];
  /** The MAC address of the router, if it is known; only then router advertisements are sent for the bridge binding. */
  readonly gatewayMac?: string;
}

/** Facts about the network of an interface: of our own network, or from the result of plugins. */
export interface InterfaceFacts {
  readonly addresses: readonly InterfaceAddress[];
  readonly gateways: readonly IpAddress[];
  readonly nameservers: readonly IpAddress[];
  readonly mtu: number;
  readonly gatewayMac?: string;
}

/** The gateway that a guest sees in its namespace, the same everywhere, so that a moved guest notices nothing. */
export const POD_GATEWAY_MAC = '02:00:00:00:00:00';
/** Its end is unusual, so that no other address has the same solicited-node multicast address. */
export const POD_GATEWAY_LINK_LOCAL = 'fe80::5e:1f5a:1';

const DEVICE = /^[A-Za-z][A-Za-z0-9_.-]{0,14}$/;
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;
/** Of a name with 15 characters, these are left after the prefix of the bridge. */
const BRIDGE_SUFFIX = 11;

/** Throws a permanent PodNetworkError for a request that cannot be fulfilled. */
export function planInterface(request: TapRequest, facts: InterfaceFacts): InterfacePlan {
  const { tap, macAddress, attachment } = request;
  const { podInterface, binding } = attachment;
  checkNames(request);
  const addresses = binding === 'bridge' ? bridgedAddresses(facts) : translatedAddresses(request, facts);
  return {
    tap,
    queues: request.queues ?? 1,
    guestMac: macAddress.toLowerCase(),
    podInterface,
    podMac: podMacOf(request, facts.addresses),
    binding,
    podBridge: `k6t-${podInterface.slice(-BRIDGE_SUFFIX)}`,
    addresses,
    nameservers: facts.nameservers,
    mtu: facts.mtu,
    ...(attachment.ports && { ports: attachment.ports }),
    ...(facts.gatewayMac !== undefined && { gatewayMac: facts.gatewayMac }),
  };
}

/** Parses the addresses of a request; throws a permanent PodNetworkError. */
export function parseAddresses(texts: readonly string[], podInterface: string): InterfaceAddress[] {
  try {
    return texts.map((text) => parseInterfaceAddress(text));
  } catch (error) {
    if (error instanceof IpAddressError) throw refuse(podInterface, error.message);
    throw error;
  }
}

/**
 * Returns the MAC address of the interface of a pod. With masquerade it follows from the address, so that it is the same
 * after a migration. With the bridge binding the guest has its own, and the interface has one that nobody talks to.
 */
export function podMacOf({ macAddress, attachment }: TapRequest, addresses: readonly InterfaceAddress[]): string {
  const v4 = addresses.find(({ address }) => address.family === 4)?.address.value;
  const isBridged = attachment.binding === 'bridge';
  const text = isBridged ? `port ${macAddress}` : addresses.map(({ address }) => formatIpAddress(address)).join();
  const hash = createHash('sha256').update(`${attachment.podInterface} ${text}`).digest('hex').slice(0, 8);
  const tail = isBridged || v4 === undefined ? hash : v4.toString(16).padStart(8, '0');
  return `${isBridged ? '0e' : '0a'}:58:${tail.match(/../g)?.join(':')}`;
}

function checkNames({ tap, macAddress, queues, attachment }: TapRequest): void {
  for (const name of [tap, attachment.podInterface]) {
    if (!DEVICE.test(name)) throw refuse(name, 'a name of a device has 1 to 15 letters, digits, dots and dashes');
  }
  if (!MAC.test(macAddress))
    throw refuse(attachment.podInterface, `${JSON.stringify(macAddress)} is not a MAC address`);
  if (queues !== undefined && !(Number.isInteger(queues) && queues >= 1 && queues <= 256)) {
    throw refuse(attachment.podInterface, `${queues} queues; expected 1 to 256`);
  }
  for (const { port } of attachment.ports ?? []) {
    if (!(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
      throw refuse(attachment.podInterface, `port ${port}; expected 1 to 65535`);
    }
  }
}

function bridgedAddresses({ addresses, gateways }: InterfaceFacts): GuestAddress[] {
  return addresses.map((guest) => {
    const gateway = gateways.find((candidate) => candidate.family === guest.address.family);
    return { guest, pod: guest.address, ...(gateway && { gateway }) };
  });
}

/** Pairs the addresses of the guest with those of the pod, by family. */
function translatedAddresses({ attachment }: TapRequest, { addresses }: InterfaceFacts): GuestAddress[] {
  const { podInterface, guestAddresses = [] } = attachment;
  const pairs = parseAddresses(guestAddresses, podInterface).flatMap((guest): GuestAddress[] => {
    const pod = addresses.find(({ address }) => address.family === guest.address.family);
    const gateway = { family: guest.address.family, value: guest.address.value - 1n };
    if (pod === undefined) return [];
    if (!networkContains(networkOf(guest.address, guest.prefix), gateway)) {
      throw refuse(
        podInterface,
        `${formatIpAddress(guest.address)}/${guest.prefix} has no address before it for a gateway`,
      );
    }
    return [{ guest, pod: pod.address, gateway }];
  });
  if (pairs.length === 0) {
    const have = addresses.map(({ address }) => formatIpAddress(address)).join(', ') || 'none';
    throw refuse(
      podInterface,
      `guest addresses ${guestAddresses.join(', ') || 'none'} do not fit those of the pod: ${have}`,
    );
  }
  return pairs;
}

function refuse(name: string, problem: string): PodNetworkError {
  return new PodNetworkError(`Cannot connect interface ${JSON.stringify(name)}: ${problem}`, { permanent: true });
}

/**
 * Decides which addresses of the default network an instance has: those it asks for, otherwise those that its owner
 * holds, otherwise new ones. controllers/network-address carries the plan out; controllers/vmi waits until nothing is
 * left to do, and refuses the launch if there is a problem. Pure.
 *
 * A new address is searched from an index that follows from the owner and the interface, so that a repetition after a
 * lost write gives the same address. Addresses of the two families get the same host number if it is free.
 */
import { createHash } from 'node:crypto';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { DEFAULT_NETWORK, type GuestNetwork } from '#api/network/guest-network.ts';
import { guestBoundsOf, guestRangeOf, hostNumberOf, isGuestIndex, subnetsOf } from '#api/network/guest-subnets.ts';
import {
  NETWORK_ADDRESSES,
  networkAddressName,
  type AddressOwner,
  type NetworkAddress,
} from '#api/network/network-address.ts';
import type { PodAddresses } from '#api/network/pod-addresses.ts';
import { requestedOfFamily, type RequestedAddresses } from '#api/network/requested-addresses.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';
import {
  addressAt,
  formatIpAddress,
  formatIpNetwork,
  networkContains,
  parseIpAddress,
  type IpAddress,
  type IpNetwork,
} from '#lib/ip-address.ts';

/** All addresses that are given away. */
export interface AddressPool {
  /** Returns the object of the address with this name, or undefined if the address is free. */
  holderOf(name: string): Stored<NetworkAddress> | undefined;
  /** Returns the number of addresses that are given away in a subnet. */
  countIn(subnet: string): number;
}

export interface AddressWorld {
  readonly owner: AddressOwner;
  /** The names of the interfaces on the pod network. */
  readonly interfaces: readonly string[];
  readonly requested: RequestedAddresses;
  readonly network: GuestNetwork;
  /** The addresses of the owner. */
  readonly held: readonly Stored<NetworkAddress>[];
  readonly pool: AddressPool;
  /** Reports whether the owner of an address no longer exists. Asked only about owners of the same namespace and name. */
  isAbandoned(address: Stored<NetworkAddress>): boolean;
}

/** A reason why the instance cannot have its addresses. */
interface AddressProblem {
  readonly reason: 'NetworkAddressConflict' | 'NetworkAddressesExhausted' | 'NetworkAddressUnavailable';
  readonly message: string;
}

export interface AddressPlan {
  readonly create: readonly NetworkAddress[];
  /**
   * Existing addresses as they should be: of an earlier owner of the same name, or of another interface of this owner.
   */
  readonly adopt: readonly Stored<NetworkAddress>[];
  /** Held addresses that are no longer wanted. Empty until all wanted ones exist. */
  readonly delete: readonly Stored<NetworkAddress>[];
  readonly problem?: AddressProblem;
  /** The addresses of all interfaces, with the prefix lengths of their subnets; absent while some do not exist. */
  readonly addresses?: PodAddresses;
}

/** The address of one interface in one subnet. */
interface Choice {
  readonly nic: string;
  readonly subnet: IpNetwork;
  readonly address: IpAddress;
  /** The existing object; absent if it must be created. */
  readonly holder?: Stored<NetworkAddress>;
}

export function planAddresses(world: AddressWorld): AddressPlan {
  const choices: Choice[] = [];
  for (const nic of world.interfaces) {
    for (const subnet of subnetsOf(world.network)) {
      const chosen = chooseAddress(world, { nic, subnet }, choices);
      if ('reason' in chosen) return { create: [], adopt: [], delete: [], problem: chosen };
      choices.push(chosen);
    }
  }
  const create = choices.filter(({ holder }) => holder === undefined).map((choice) => buildAddress(world, choice));
  const adopt = choices.flatMap(({ holder, nic }) =>
    holder === undefined || (isOwn(world, holder) && holder.spec.interface === nic)
      ? []
      : [{ ...holder, spec: { ...holder.spec, interface: nic, owner: { ...world.owner } } }],
  );
  if (create.length > 0 || adopt.length > 0) return { create, adopt, delete: [] };
  const wanted = new Set(choices.map(({ address }) => networkAddressName(address)));
  const surplus = world.held.filter(({ metadata }) => !wanted.has(metadata.name));
  return { create, adopt, delete: surplus, addresses: groupByInterface(choices) };
}

interface Slot {
  readonly nic: string;
  readonly subnet: IpNetwork;
}

function chooseAddress(world: AddressWorld, slot: Slot, chosen: readonly Choice[]): Choice | AddressProblem {
  return chooseRequested(world, slot, chosen) ?? chooseHeld(world, slot, chosen) ?? chooseNew(world, slot, chosen);
}

function chooseRequested(
  world: AddressWorld,
  { nic, subnet }: Slot,
  chosen: readonly Choice[],
): Choice | AddressProblem | undefined {
  const address = requestedOfFamily(world.requested[nic] ?? [], subnet.address.family);
  if (address === undefined) return undefined;
  const unusable = describeUnusable(subnet, address);
  if (unusable !== undefined) {
    return { reason: 'NetworkAddressUnavailable', message: `${describe(address, nic)} ${unusable}; ${ASK}` };
  }
  const twice = chosen.find((other) => isSameAddress(other.address, address));
  if (twice !== undefined) return conflict(address, nic, `is also that of interface "${twice.nic}"`);
  const holder = world.pool.holderOf(networkAddressName(address));
  if (holder === undefined) return { nic, subnet, address };
  const isUsable = isOwn(world, holder) || (isOfSameName(world.owner, holder) && world.isAbandoned(holder));
  if (isUsable) return { nic, subnet, address, holder };
  return conflict(address, nic, `belongs to ${describeOwner(holder, world.owner)}`);
}

/** Names the owner only if it is in the same namespace: the reader may not be allowed to see others. */
function describeOwner({ metadata, spec: { owner } }: Stored<NetworkAddress>, { namespace }: AddressOwner): string {
  if (owner.namespace === namespace) return `${owner.kind} "${owner.name}"`;
  return `a ${owner.kind} in another namespace, which kubectl get networkaddress ${metadata.name} shows`;
}

const ASK = `ask for another one with the annotation ${REQUESTED_ADDRESSES_ANNOTATION}`;

function conflict(address: IpAddress, nic: string, what: string): AddressProblem {
  return { reason: 'NetworkAddressConflict', message: `${describe(address, nic)} ${what}; ${ASK}` };
}

function describe(address: IpAddress, nic: string): string {
  return `address ${formatIpAddress(address)} of interface "${nic}"`;
}

/** Returns why no guest can have the address, or undefined if one can. */
export function describeUnusable(subnet: IpNetwork, address: IpAddress): string | undefined {
  if (!networkContains(subnet, address)) {
    return `is outside of subnet ${formatIpNetwork(subnet)} of GuestNetwork "${DEFAULT_NETWORK}"`;
  }
  if (isGuestIndex(subnet, hostNumberOf(subnet, address))) return undefined;
  const [first, last] = guestBoundsOf(subnet).map(formatIpAddress);
  return `is reserved; guests can have ${first} to ${last}`;
}

/** Chooses the first address that the owner holds for the interface. It has several only while it changes them. */
function chooseHeld(world: AddressWorld, { nic, subnet }: Slot, chosen: readonly Choice[]): Choice | undefined {
  const text = formatIpNetwork(subnet);
  const fitting = world.held.filter(({ spec }) => spec.interface === nic && spec.subnet === text);
  for (const holder of fitting.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const { family, value } = parseIpAddress(holder.spec.address);
    const address = { family, value };
    if (!isWantedElsewhere(world, { nic, address }, chosen)) return { nic, subnet, address, holder };
  }
  return undefined;
}

function chooseNew(world: AddressWorld, { nic, subnet }: Slot, chosen: readonly Choice[]): Choice | AddressProblem {
  const { pool, owner } = world;
  const { first, count } = guestRangeOf(subnet);
  const text = formatIpNetwork(subnet);
  const exhausted: AddressProblem = {
    reason: 'NetworkAddressesExhausted',
    message: `interface "${nic}" needs an address, but all ${count} addresses of subnet ${text} of GuestNetwork "${DEFAULT_NETWORK}" are given away; delete VirtualMachines that are not needed, stopped ones included`,
  };
  // Without this check, every waiting instance would search the whole subnet.
  if (BigInt(pool.countIn(text)) >= count) return exhausted;
  const start = startIndexOf(owner, { nic, subnet }, chosen) - first;
  for (let step = 0n; step < count; step++) {
    const address = addressAt(subnet, first + ((start + step) % count));
    const isHeld = pool.holderOf(networkAddressName(address)) !== undefined;
    if (!isHeld && !isWantedElsewhere(world, { nic, address }, chosen)) return { nic, subnet, address };
  }
  return exhausted;
}

/** Returns the host number of the interface's address of the other family, or one that follows from owner and interface. */
function startIndexOf({ uid }: AddressOwner, { nic, subnet }: Slot, chosen: readonly Choice[]): bigint {
  const other = chosen.find((choice) => choice.nic === nic);
  const number = other === undefined ? undefined : hostNumberOf(other.subnet, other.address);
  if (number !== undefined && isGuestIndex(subnet, number)) return number;
  const { first, count } = guestRangeOf(subnet);
  const hash = createHash('sha256').update(`${uid}/${nic}`).digest().readBigUInt64BE(0);
  return first + (hash % count);
}

/** Reports whether another interface of the instance has got the address or asks for it. */
function isWantedElsewhere(
  { interfaces, requested }: AddressWorld,
  { nic, address }: Pick<Choice, 'nic' | 'address'>,
  chosen: readonly Choice[],
): boolean {
  if (chosen.some((other) => isSameAddress(other.address, address))) return true;
  return interfaces.some((name) => {
    const wanted = name === nic ? undefined : requestedOfFamily(requested[name] ?? [], address.family);
    return wanted !== undefined && isSameAddress(wanted, address);
  });
}

function buildAddress({ owner }: AddressWorld, { nic, subnet, address }: Choice): NetworkAddress {
  return {
    apiVersion: apiVersionOf(NETWORK_ADDRESSES),
    kind: NETWORK_ADDRESSES.kind,
    metadata: { name: networkAddressName(address) },
    spec: {
      address: formatIpAddress(address),
      network: DEFAULT_NETWORK,
      subnet: formatIpNetwork(subnet),
      interface: nic,
      owner: { ...owner },
    },
  };
}

function groupByInterface(choices: readonly Choice[]): PodAddresses {
  const addresses: Record<string, string[]> = {};
  for (const { nic, subnet, address } of choices) {
    (addresses[nic] ??= []).push(`${formatIpAddress(address)}/${subnet.prefix}`);
  }
  return addresses;
}

/** Users can write any uid into the owner references of an instance, so the name must be the same, too. */
function isOwn({ owner }: AddressWorld, address: NetworkAddress): boolean {
  return address.spec.owner.uid === owner.uid && isOfSameName(owner, address);
}

function isOfSameName(owner: AddressOwner, { spec }: NetworkAddress): boolean {
  return spec.owner.namespace === owner.namespace && spec.owner.name === owner.name;
}

function isSameAddress(a: IpAddress, b: IpAddress): boolean {
  return a.family === b.family && a.value === b.value;
}

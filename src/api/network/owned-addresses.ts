/**
 * The addresses of a VM as its identity record has them: for each interface a list, IPv4 first. Taken from the
 * NetworkAddress objects of the VM; given to its next instance in an annotation. Pure.
 */
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { subnetsOf } from '#api/network/guest-subnets.ts';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { NetworkAddress } from '#api/network/network-address.ts';
import {
  formatRequestedAddresses,
  parseIfValid,
  podInterfacesOf,
  requestedAddressesIn,
  requestedAddressesOf,
  requestedOfFamily,
} from '#api/network/requested-addresses.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { formatIpAddress, networkContains, type IpAddress } from '#lib/ip-address.ts';

/** Addresses by the name of the interface. */
export type OwnedAddresses = ReadonlyMap<string, readonly string[]>;

/**
 * Returns the addresses that the VM has for sure. An interface whose addresses are about to change is left out: until
 * it has one in each subnet, and the one that its instance asks for, or while it has two of one family.
 */
export function ownedAddressesOf(
  held: readonly NetworkAddress[],
  network: GuestNetwork | undefined,
  vmi: Pick<VirtualMachineInstance, 'metadata'> | undefined,
): OwnedAddresses {
  const families = network === undefined ? [] : subnetsOf(network).map(({ address }) => address.family);
  const requested = requestedAddressesIn(vmi?.metadata.annotations);
  const owned = new Map<string, readonly string[]>();
  for (const [nic, objects] of Map.groupBy(held, ({ spec }) => spec.interface)) {
    const texts = objects.map(({ spec }) => spec.address);
    const settled = families.flatMap((family) => {
      const candidates = texts.filter((text) => parseIfValid(text)?.family === family);
      const wanted = requestedOfFamily(requested[nic] ?? [], family);
      const chosen = wanted === undefined ? candidates : candidates.filter((text) => text === formatIpAddress(wanted));
      return chosen.length === 1 ? chosen : [];
    });
    if (settled.length > 0 && settled.length === families.length) owned.set(nic, settled);
  }
  return owned;
}

/**
 * Returns the annotation of an instance: what the VM asks for, otherwise what its record has, unless that is outside of
 * the network. Empty if there is neither.
 */
export function requestAnnotation(
  vm: VirtualMachine,
  identity: IdentitySpec,
  network: GuestNetwork | undefined,
): Record<string, string> {
  const next = nextAddressesOf(vm, identity, network);
  if (next.size === 0) return {};
  return { [REQUESTED_ADDRESSES_ANNOTATION]: formatRequestedAddresses(Object.fromEntries(next)) };
}

/** Returns the addresses that the next instance of a VM asks for, by the name of the network. */
export function nextAddressesOf(
  vm: VirtualMachine,
  identity: IdentitySpec,
  network: GuestNetwork | undefined,
): OwnedAddresses {
  const subnets = network === undefined ? [] : subnetsOf(network);
  return mergeAddresses(vm, identity, (address) => subnets.some((subnet) => networkContains(subnet, address)));
}

/** An address that an interface of a VM has or asks for. */
interface ClaimedAddress {
  readonly interface: string;
  /** In its canonical form. */
  readonly address: string;
}

/**
 * Returns the addresses that a VM asks for, and those of its record in their place where it asks for none. Empty for a
 * VM that is being deleted: it will not keep its addresses for long.
 */
export function claimedAddressesOf(vm: VirtualMachine, identity: IdentitySpec | undefined): ClaimedAddress[] {
  if (vm.metadata.deletionTimestamp !== undefined) return [];
  return [...mergeAddresses(vm, identity ?? {}, () => true)].flatMap(([nic, texts]) =>
    texts.flatMap((text) => {
      const address = parseIfValid(text);
      return address === undefined ? [] : [{ interface: nic, address: formatIpAddress(address) }];
    }),
  );
}

/** Returns the requested addresses, and the recorded ones of other families that are usable. */
function mergeAddresses(
  vm: VirtualMachine,
  { interfaces = [] }: IdentitySpec,
  isUsable: (address: IpAddress) => boolean,
): Map<string, readonly string[]> {
  const merged = new Map(Object.entries(requestedAddressesOf(vm)));
  const onPodNetwork = new Set(podInterfacesOf(vm.spec.template.spec ?? { domain: {} }));
  for (const { name, addresses = [] } of interfaces) {
    const asked = merged.get(name) ?? [];
    const kept = addresses.filter((text) => {
      const address = parseIfValid(text);
      return address !== undefined && isUsable(address) && requestedOfFamily(asked, address.family) === undefined;
    });
    if (onPodNetwork.has(name) && kept.length > 0) merged.set(name, [...asked, ...kept]);
  }
  return merged;
}

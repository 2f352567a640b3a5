/** Builders for tests of address plans: a pool in memory, and valid worlds that take overrides. */
import { buildGuestNetwork } from '#api/network/guest-network.ts';
import type { AddressOwner, NetworkAddress } from '#api/network/network-address.ts';
import type { AddressWorld } from '#api/network/plan-addresses.ts';
import type { Stored } from '#kube/meta.ts';

export const SUBNETS = ['10.244.0.0/16', 'fd00:10:244::/64'];

export const ownerOf = (name: string, uid = `uid-${name}`): AddressOwner => ({
  kind: 'VirtualMachine',
  namespace: 'ns',
  name,
  uid,
});

export function storedAddress(
  { metadata, spec, ...rest }: NetworkAddress,
  uid = `of-${metadata.name ?? ''}`,
): Stored<NetworkAddress> {
  const stored = { name: '', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', uid };
  return { ...rest, metadata: { ...stored, ...metadata }, spec };
}

/** Returns an address object; `subnet` is that of SUBNETS unless given. */
export function anAddress(
  address: string,
  owner: AddressOwner,
  { nic = 'default', subnet = SUBNETS[address.includes(':') ? 1 : 0] ?? '' }: { nic?: string; subnet?: string } = {},
): Stored<NetworkAddress> {
  const name = address.includes(':') ? expand(address) : address;
  const spec = { address, network: 'default', subnet, interface: nic, owner };
  return storedAddress({ apiVersion: 'network.selfsame.io/v1', kind: 'NetworkAddress', metadata: { name }, spec });
}

/** Expands fd00:10:244::5 to the name of its object. */
function expand(address: string): string {
  const [head = '', tail = ''] = address.split('::').map((part) => part);
  const [before, after] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (before?.length ?? 0) - (after?.length ?? 0) }, () => '0');
  return [...(before ?? []), ...zeros, ...(after ?? [])].map((group) => group.padStart(4, '0')).join('-');
}

/** Returns the world of VM `db` with one interface, in which `all` are given away. */
export function anAddressWorld({
  all = [],
  subnets = SUBNETS,
  ...overrides
}: Partial<AddressWorld> & {
  all?: readonly Stored<NetworkAddress>[];
  subnets?: readonly string[];
} = {}): AddressWorld {
  const byName = new Map(all.map((address) => [address.metadata.name, address]));
  const owner = overrides.owner ?? ownerOf('db');
  return {
    owner,
    interfaces: ['default'],
    requested: {},
    network: buildGuestNetwork(subnets),
    held: all.filter(({ spec }) => spec.owner.uid === owner.uid),
    pool: {
      holderOf: (name) => byName.get(name),
      countIn: (subnet) => all.filter(({ spec }) => spec.subnet === subnet).length,
    },
    isAbandoned: () => false,
    ...overrides,
  };
}

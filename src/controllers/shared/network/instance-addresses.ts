/**
 * The addresses of instances, from caches: the plan for one instance, and the sources that wake the instances whose plan
 * changes. controllers/network-address carries plans out; controllers/vmi waits for them.
 */
import { DEFAULT_NETWORK, GUEST_NETWORKS } from '#api/network/guest-network.ts';
import { guestRangeOf } from '#api/network/guest-subnets.ts';
import {
  NETWORK_ADDRESSES,
  networkAddressName,
  type AddressOwner,
  type NetworkAddress,
} from '#api/network/network-address.ts';
import { planAddresses, type AddressPlan, type AddressPool } from '#api/network/plan-addresses.ts';
import { parseIfValid, podInterfacesOf, requestedAddressesIn } from '#api/network/requested-addresses.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { indexUnplaced, unplacedKeysIn } from '#controllers/shared/indexes/unplaced-instances.ts';
import { controllerOf, type Stored } from '#kube/meta.ts';
import { parseIpNetwork } from '#lib/ip-address.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { source, type Source } from '#runtime/controller.ts';

type Vmi = Stored<VirtualMachineInstance>;

/** The name of an index: addresses by the key of their owner, which is also that of its instance. */
export const ADDRESSES_BY_OWNER = 'addresses-by-owner';
/** The name of an index: addresses by their subnet. */
const ADDRESSES_BY_SUBNET = 'addresses-by-subnet';
/** The name of an index: instances by the names of the NetworkAddress objects that they ask for. */
const INSTANCES_BY_REQUEST = 'vmi-by-requested-address';

export function ownerKeyOf({ spec: { owner } }: NetworkAddress): string {
  return keyOf(owner);
}

/** Returns the owner of the addresses of an instance: its VM, or the instance itself if it has none. */
function addressOwnerOf(vmi: Vmi): AddressOwner {
  const { namespace = '', name, uid } = vmi.metadata;
  const controller = controllerOf(vmi);
  if (controller?.kind === VIRTUAL_MACHINES.kind) {
    return { kind: 'VirtualMachine', namespace, name: controller.name, uid: controller.uid };
  }
  return { kind: 'VirtualMachineInstance', namespace, name, uid };
}

interface InstanceAddresses {
  /** Wake the instances whose plan may have changed. */
  readonly sources: readonly Source[];
  /** Returns the plan for an instance, or undefined if it needs no addresses. */
  plan(vmi: Vmi, isAbandoned: (address: Stored<NetworkAddress>) => boolean): AddressPlan | undefined;
}

export function observeInstanceAddresses({ informer }: Pick<ControllerParts, 'informer'>): InstanceAddresses {
  const addresses = informer(NETWORK_ADDRESSES);
  const networks = informer(GUEST_NETWORKS);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  indexUnplaced(vmis);
  addresses.addIndex(ADDRESSES_BY_OWNER, (address) => [ownerKeyOf(address)]);
  addresses.addIndex(ADDRESSES_BY_SUBNET, ({ spec }) => [spec.subnet]);
  vmis.addIndex(INSTANCES_BY_REQUEST, requestedNamesOf);
  const pool: AddressPool = {
    holderOf: (name) => addresses.get(name),
    countIn: (subnet) => addresses.countByIndex(ADDRESSES_BY_SUBNET, subnet),
  };
  const unplaced = () => unplacedKeysIn(vmis, '');
  return {
    sources: [
      source(addresses, (address) => [
        ownerKeyOf(address),
        ...vmis.byIndex(INSTANCES_BY_REQUEST, address.metadata.name).map(objectKey),
      ]),
      exhaustionSource(addresses, pool, unplaced),
      source(networks, unplaced),
    ],
    plan(vmi, isAbandoned) {
      const network = networks.get(DEFAULT_NETWORK);
      const interfaces = podInterfacesOf(vmi.spec);
      if (network === undefined || interfaces.length === 0) return undefined;
      const owner = addressOwnerOf(vmi);
      const held = addresses
        .byIndex(ADDRESSES_BY_OWNER, keyOf(owner))
        .filter(({ spec }) => spec.owner.uid === owner.uid);
      const requested = requestedAddressesIn(vmi.metadata.annotations);
      return planAddresses({ owner, interfaces, requested, network, held, pool, isAbandoned });
    },
  };
}

function requestedNamesOf(vmi: Vmi): string[] {
  const texts = Object.values(requestedAddressesIn(vmi.metadata.annotations)).flat();
  return [...new Set(texts)].flatMap((text) => {
    const address = parseIfValid(text);
    return address === undefined ? [] : [networkAddressName(address)];
  });
}

/** Wakes the waiting instances when the last address of a subnet is given away, and when one is free again. */
function exhaustionSource(addresses: Informer<NetworkAddress>, pool: AddressPool, waiting: () => string[]): Source {
  return {
    cache: addresses,
    subscribe: (add) =>
      addresses.onChange((_, { old, new: present }) => {
        if (old !== undefined && present !== undefined) return;
        const subnet = (present ?? old)?.spec.subnet ?? '';
        const capacity = Number(guestRangeOf(parseIpNetwork(subnet)).count);
        const limit = present === undefined ? capacity - 1 : capacity;
        if (pool.countIn(subnet) === limit) for (const key of waiting()) add(key);
      }),
  };
}

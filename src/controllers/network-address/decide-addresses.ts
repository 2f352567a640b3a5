/** Decides which NetworkAddresses of one name are created, given to another owner, and deleted. Pure. */
import { NETWORK_ADDRESSES, type NetworkAddress } from '#api/network/network-address.ts';
import type { AddressPlan } from '#api/network/plan-addresses.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export interface AddressesWorld {
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The plan for the instance; absent if it needs no addresses now. */
  readonly plan?: AddressPlan;
  /** The addresses whose owner no longer exists. */
  readonly abandoned: readonly Stored<NetworkAddress>[];
  /** Reports whether a launcher pod that has not ended has the address. */
  isInUse(address: Stored<NetworkAddress>): boolean;
}

/** The number of changes of one plan; the writes enqueue the key again. */
const MAX_WRITES = 50;

export function decideAddresses({ plan, abandoned, isInUse }: AddressesWorld): Plan {
  const adopted = new Set(plan?.adopt.map(({ metadata }) => metadata.uid));
  const deletable = (list: readonly Stored<NetworkAddress>[]) => list.filter((address) => !isInUse(address));
  const changes: Change[] = [
    ...(plan?.create ?? []).map(createAddress),
    ...(plan?.adopt ?? []).map(adoptAddress),
    ...deletable(plan?.delete ?? []).map((address) => deleteAddress(address, 'its owner has another one now')),
    ...deletable(abandoned)
      .filter(({ metadata }) => !adopted.has(metadata.uid))
      .map((address) => deleteAddress(address, 'its owner no longer exists')),
  ];
  return { changes: changes.slice(0, MAX_WRITES) };
}

function createAddress(object: NetworkAddress): Change {
  const { address, interface: nic, owner } = object.spec;
  const isSame = (present: Stored) => (present as Stored<NetworkAddress>).spec.owner.uid === owner.uid;
  const why = `Assigned address ${address} to interface "${nic}"`;
  return { do: 'create', type: NETWORK_ADDRESSES, object, isSame, reason: 'NetworkAddressAssigned', why };
}

function adoptAddress({ metadata: { name, uid, resourceVersion }, spec }: Stored<NetworkAddress>): Change {
  const { interface: nic, owner } = spec;
  const body = { metadata: { resourceVersion }, spec: { interface: nic, owner } };
  const why = `address ${spec.address} now belongs to interface "${nic}" of ${owner.kind} ${owner.name}`;
  return { do: 'patch', type: NETWORK_ADDRESSES, name: { name }, uid, patch: { type: 'merge', body }, why };
}

function deleteAddress({ metadata, spec }: Stored<NetworkAddress>, reason: string): Change {
  const { name, uid, resourceVersion } = metadata;
  const why = `Released address ${spec.address}: ${reason}`;
  return {
    do: 'delete',
    type: NETWORK_ADDRESSES,
    name: { name },
    uid,
    resourceVersion,
    reason: 'NetworkAddressReleased',
    why,
  };
}

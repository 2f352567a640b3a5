/** Finds and prints VirtualMachines that share an address on the default network. Pure. */
import { claimedAddressesOf } from '#api/network/owned-addresses.ts';
import type { IdentitySpec, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { hasInterfaces } from '#cli/commands/identity/duplicate-macs.ts';
import { groupDuplicates, textAt, type ListedVm } from '#cli/commands/identity/duplicate-uuids.ts';
import { controllerUid, isRecord } from '#kube/meta.ts';
import { alignedTable } from '#lib/terminal/table.ts';

/** An interface of a VirtualMachine with an address that it has or asks for. */
export interface ListedAddressHolder extends ListedVm {
  readonly address: string;
  readonly interface: string;
}

interface AddressDuplicate {
  readonly address: string;
  /** Two or more, by namespace and name. */
  readonly holders: readonly ListedAddressHolder[];
}

/** The recorded identities of VMs, by the uid of the VM. */
export type RecordedIdentities = ReadonlyMap<string, IdentitySpec>;

/** Returns the uid of the VM of a record with its identity; undefined if it has no addresses. */
export function toRecordedIdentity(record: unknown): [uid: string, spec: IdentitySpec] | undefined {
  if (!isRecord(record) || !isRecord(record['spec']) || !isRecord(record['metadata'])) return undefined;
  const { spec } = record as unknown as VirtualMachineIdentity;
  const uid = controllerUid(record as unknown as VirtualMachineIdentity);
  const hasAddresses = spec.interfaces?.some(({ addresses = [] }) => addresses.length > 0) === true;
  return uid === undefined || !hasAddresses ? undefined : [uid, { interfaces: spec.interfaces }];
}

export function toListedAddressHolders(vm: unknown, recorded: RecordedIdentities): ListedAddressHolder[] {
  if (!hasInterfaces(vm)) return [];
  const owner = {
    namespace: textAt(vm, 'metadata', 'namespace'),
    name: textAt(vm, 'metadata', 'name'),
    status: textAt(vm, 'status', 'printableStatus'),
  };
  const identity = recorded.get(textAt(vm, 'metadata', 'uid'));
  return claimedAddressesOf(vm, identity).map((claimed) => ({ ...claimed, ...owner }));
}

/** Returns duplicates by address; with a namespace, only those that involve a VM in it. */
export function findAddressDuplicates(holders: readonly ListedAddressHolder[], namespace?: string): AddressDuplicate[] {
  return groupDuplicates(holders, ({ address }) => address, namespace).map(([address, sharing]) => ({
    address,
    holders: sharing,
  }));
}

export function addressDuplicatesTable(duplicates: readonly AddressDuplicate[]): string {
  const rows = duplicates.flatMap(({ holders }) =>
    holders.map(({ address, namespace, name, interface: nic, status }) => [
      ...[address, namespace, name, nic],
      status === '' ? '<none>' : status,
    ]),
  );
  return alignedTable([['ADDRESS', 'NAMESPACE', 'NAME', 'INTERFACE', 'STATUS'], ...rows]);
}

/** Returns the value for JSON and YAML output. */
export function addressDuplicatesAsValue(duplicates: readonly AddressDuplicate[]): unknown[] {
  return duplicates.map(({ address, holders }) => ({
    address,
    virtualMachines: holders.map(({ namespace, name, interface: nic }) => ({ namespace, name, interface: nic })),
  }));
}

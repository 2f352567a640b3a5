/** Finds and prints VirtualMachines that share a MAC address. Pure. */
import { comparableMac } from '#api/identity/mac-address-index.ts';
import { groupDuplicates, textAt, type ListedVm } from '#cli/commands/identity/duplicate-uuids.ts';
import { isRecord } from '#kube/meta.ts';
import { alignedTable } from '#lib/terminal/table.ts';

/** An interface of a VirtualMachine whose template names a MAC address. */
export interface ListedMacHolder extends ListedVm {
  /** In lower case, with colons. */
  readonly macAddress: string;
  readonly interface: string;
}

interface MacDuplicate {
  readonly macAddress: string;
  /** Two or more, by namespace and name. */
  readonly holders: readonly ListedMacHolder[];
}

/** Returns the interfaces with a MAC address; none for a VM under deletion. */
export function toListedMacHolders(vm: unknown): ListedMacHolder[] {
  if (textAt(vm, 'metadata', 'deletionTimestamp') !== '') return [];
  let devices = vm;
  for (const key of ['spec', 'template', 'spec', 'domain', 'devices']) {
    devices = isRecord(devices) ? devices[key] : undefined;
  }
  const interfaces = isRecord(devices) ? devices['interfaces'] : undefined;
  const owner = {
    namespace: textAt(vm, 'metadata', 'namespace'),
    name: textAt(vm, 'metadata', 'name'),
    status: textAt(vm, 'status', 'printableStatus'),
  };
  return (Array.isArray(interfaces) ? interfaces : []).flatMap((nic: unknown) => {
    const macAddress = comparableMac(textAt(nic, 'macAddress'));
    return macAddress === '' ? [] : [{ macAddress, ...owner, interface: textAt(nic, 'name') }];
  });
}

/** Returns duplicates by MAC address; with a namespace, only those that involve a VM in it. */
export function findMacDuplicates(holders: readonly ListedMacHolder[], namespace?: string): MacDuplicate[] {
  return groupDuplicates(holders, ({ macAddress }) => macAddress, namespace).map(([macAddress, sharing]) => ({
    macAddress,
    holders: sharing,
  }));
}

export function macDuplicatesTable(duplicates: readonly MacDuplicate[]): string {
  const rows = duplicates.flatMap(({ holders }) =>
    holders.map(({ macAddress, namespace, name, interface: nic, status }) => [
      ...[macAddress, namespace, name, nic],
      status === '' ? '<none>' : status,
    ]),
  );
  return alignedTable([['MAC', 'NAMESPACE', 'NAME', 'INTERFACE', 'STATUS'], ...rows]);
}

/** Returns the value for JSON and YAML output. */
export function macDuplicatesAsValue(duplicates: readonly MacDuplicate[]): unknown[] {
  return duplicates.map(({ macAddress, holders }) => ({
    macAddress,
    virtualMachines: holders.map(({ namespace, name, interface: nic }) => ({ namespace, name, interface: nic })),
  }));
}

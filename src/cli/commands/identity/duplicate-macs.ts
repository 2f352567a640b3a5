/** Finds and prints VirtualMachines that share a MAC address. Pure. */
import { interfaceMacs } from '#api/identity/mac-address-index.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { groupDuplicates, textAt, type ListedVm } from '#cli/commands/identity/duplicate-uuids.ts';
import { isRecord } from '#kube/meta.ts';
import { alignedTable } from '#lib/terminal/table.ts';

/** An interface of a VirtualMachine. */
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

/** Returns the interfaces with their MAC addresses; none for a VM under deletion. */
export function toListedMacHolders(vm: unknown): ListedMacHolder[] {
  if (!hasInterfaces(vm)) return [];
  const owner = {
    namespace: textAt(vm, 'metadata', 'namespace'),
    name: textAt(vm, 'metadata', 'name'),
    status: textAt(vm, 'status', 'printableStatus'),
  };
  return interfaceMacs(vm).map(({ name, macAddress }) => ({ macAddress, ...owner, interface: name }));
}

/** Reports whether the interfaces of a listed VM can be read; objects of a list are not validated. */
export function hasInterfaces(vm: unknown): vm is VirtualMachine {
  let domain = vm;
  for (const key of ['spec', 'template', 'spec', 'domain']) domain = isRecord(domain) ? domain[key] : undefined;
  if (!isRecord(domain)) return false;
  const { devices = {} } = domain;
  return isRecord(devices) && (devices['interfaces'] === undefined || Array.isArray(devices['interfaces']));
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

/** Index key that finds VMs by the MAC addresses of their interfaces, to detect duplicates. Pure. */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { derivedMacOf } from '#api/virtual-machine-identity/restored-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { normalizeMac } from '#api/identity/normalize-mac.ts';

export const BY_MAC_ADDRESS = 'mac-address';

interface InterfaceMac {
  readonly name: string;
  /** In lower case and with colons. */
  readonly macAddress: string;
}

/**
 * Returns the interfaces with their MAC addresses: those that the template names, and those that are derived from the VM.
 * Empty for a VM that is being deleted: it will not keep its addresses for long.
 */
export function interfaceMacs({ metadata, spec }: VirtualMachine): InterfaceMac[] {
  const { uid } = metadata;
  const template = spec.template.spec;
  if (metadata.deletionTimestamp !== undefined || template?.domain === undefined) return [];
  return interfacesOf(template).flatMap(({ name, macAddress }) => {
    if (macAddress) return [{ name, macAddress: normalizeMac(macAddress) }];
    // A VM that is being created may have no uid yet.
    return uid === undefined ? [] : [{ name, macAddress: derivedMacOf({ metadata: { ...metadata, uid } }, name) }];
  });
}

/** Returns the MAC addresses of the VM, each once. */
export function macAddressesOf(vm: VirtualMachine): string[] {
  return [...new Set(interfaceMacs(vm).map(({ macAddress }) => macAddress))];
}

/** Index key that finds VMs by the MAC addresses of their template, to detect duplicates. Pure. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

export const BY_MAC_ADDRESS = 'mac-address';

/**
 * Returns the MAC addresses that the template names, each once, in lower case and with colons. Empty for a VM that is
 * being deleted: it will not keep its addresses for long.
 */
export function macAddressesOf({ metadata, spec }: VirtualMachine): string[] {
  if (metadata.deletionTimestamp !== undefined) return [];
  const { interfaces = [] } = spec.template.spec?.domain.devices ?? {};
  return [...new Set(interfaces.flatMap(({ macAddress }) => (macAddress ? [comparableMac(macAddress)] : [])))];
}

/** Returns the address in the form in which addresses are compared. */
export function comparableMac(text: string): string {
  return text.toLowerCase().replaceAll('-', ':');
}

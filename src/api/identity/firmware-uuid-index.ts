/** Index key that finds VMs by the firmware UUID of their template, to detect duplicates. Pure. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

export const BY_FIRMWARE_UUID = 'firmware-uuid';

/** Returns the UUID in lower case. Undefined for a VM that is being deleted: it will not keep its UUID for long. */
export function firmwareUuidOf({ metadata, spec }: VirtualMachine): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  return spec.template.spec?.domain.firmware?.uuid?.toLowerCase() || undefined;
}

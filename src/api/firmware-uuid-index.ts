/** How VMs are found by the firmware uuid that their template names, by whoever asks for others that have it too. Pure. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

export const BY_FIRMWARE_UUID = 'firmware-uuid';

/** In lower case, since uuids are the same in any; none for a VM that goes: it will not hold it for long. */
export function firmwareUuidOf({ metadata, spec }: VirtualMachine): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  return spec.template.spec?.domain.firmware?.uuid?.toLowerCase() || undefined;
}

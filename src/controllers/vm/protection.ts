/** What a VM says of its delete protection: in its status, and in an Event whenever that changes. Pure. */
import { isProtected, PROTECTION_BY_ANNOTATION, PROTECTION_REASON_ANNOTATION } from '#api/delete-protection.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { EventNote } from '#runtime/events.ts';

export function protectionStatus({ vm }: VmWorld): Pick<VmStatus, 'deleteProtected'> {
  return isProtected(vm) ? { deleteProtected: true } : {};
}

/** To go with the write of the status, which makes it old. */
export function protectionNews({ vm }: VmWorld): EventNote[] {
  const protects = isProtected(vm);
  if (protects === (vm.status?.deleteProtected ?? false)) return [];
  const { [PROTECTION_BY_ANNOTATION]: by, [PROTECTION_REASON_ANNOTATION]: why } = vm.metadata.annotations ?? {};
  return [
    protects
      ? {
          type: 'Normal',
          reason: 'DeleteProtectionEnabled',
          message: `Protected from deletion${by ? ` by ${by}` : ''}${why ? `: ${why}` : ''}`,
        }
      : {
          type: 'Normal',
          reason: 'DeleteProtectionDisabled',
          message: `No longer protected from deletion${by ? `, by ${by}` : ''}`,
        },
  ];
}

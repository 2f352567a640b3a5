/** Reports the delete protection of a VM in its status, and each change in an Event. Pure. */
import {
  isProtected,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { EventNote } from '#runtime/events.ts';

export function protectionStatus({ vm }: VmWorld): Pick<VmStatus, 'deleteProtected'> {
  return isProtected(vm) ? { deleteProtected: true } : {};
}

/** Returns the Event if the protection has changed. Must accompany the status, which then records the change. */
export function protectionEvents({ vm }: VmWorld): EventNote[] {
  const isNowProtected = isProtected(vm);
  if (isNowProtected === (vm.status?.deleteProtected ?? false)) return [];
  const { [PROTECTION_BY_ANNOTATION]: by, [PROTECTION_REASON_ANNOTATION]: why } = vm.metadata.annotations ?? {};
  return [
    isNowProtected
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

/**
 * The condition of a VM whose claims are being deleted. The guest runs on, but each claim and its data are removed when
 * the guest ends. controllers/vm writes the condition; verbs and jobs read it.
 */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PrintableStatus } from '#api/virtual-machine/schema.ts';
import { findCondition } from '#kube/conditions.ts';

/** The type and reason of the condition. */
export const CLAIM_DELETION = 'ClaimBeingDeleted';

/** Returns the message of the condition, or undefined if no claim of the VM is being deleted. */
export function findClaimDeletion({ status }: Pick<VirtualMachine, 'status'>): string | undefined {
  const condition = findCondition(status?.conditions, CLAIM_DELETION);
  return condition?.status === 'True' ? (condition.message ?? '') : undefined;
}

/** Statuses of VMs whose instance has no guest yet. */
const STARTING: ReadonlySet<PrintableStatus> = new Set<PrintableStatus>([
  'ErrorPvcNotFound',
  'ErrorUnschedulable',
  'WaitingForVolumeBinding',
  'ErrImagePull',
  'ImagePullBackOff',
  'Starting',
]);

/**
 * Reports whether the VM waits for the start of its guest. A snapshot then waits for the guest as well, so that stopping
 * the VM does not interrupt a copy.
 */
export function awaitsGuest({ status }: Pick<VirtualMachine, 'status'>): boolean {
  return status?.printableStatus !== undefined && STARTING.has(status.printableStatus);
}

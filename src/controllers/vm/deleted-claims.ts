/** Reports claims of a VM that are being deleted, in a condition and an Event. Pure. */
import { CLAIM_DELETION, findClaimDeletion } from '#api/virtual-machine/claim-deletion.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import type { DeletedClaim, VmWorld } from '#controllers/vm/vm-world.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { NextCondition } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';

/** Maximum number of claims in the message. */
const MAX_NAMED = 3;

/** Returns the condition, or undefined. A VM under deletion does not need its claims any more. */
export function claimDeletionCondition({ vm, vmi, deletedClaims = [] }: VmWorld): NextCondition | undefined {
  if (deletedClaims.length === 0 || isDeleting(vm)) return undefined;
  const hasGuest = vmi !== undefined && !isFinal(vmi);
  const outcome =
    isProtected(vm) && hasGuest ? describeRetention(deletedClaims) : describeLoss(deletedClaims, hasGuest);
  const message = `${nameClaims(deletedClaims)} of the VM is being deleted: ${outcome}`;
  return { type: CLAIM_DELETION, status: 'True', reason: CLAIM_DELETION, message };
}

function nameClaims(claims: readonly DeletedClaim[]): string {
  const names = claims.slice(0, MAX_NAMED).map(({ name }) => `"${name}"`);
  return `PersistentVolumeClaim ${names.join(', ')}${claims.length > MAX_NAMED ? ' and others' : ''}`;
}

function describeLoss(claims: readonly DeletedClaim[], hasGuest: boolean): string {
  const hasDisk = claims.some(({ holds }) => holds === 'disk');
  if (!hasGuest) {
    return hasDisk
      ? 'the VM cannot start with it; create a claim of that name once it is gone'
      : 'the next start begins with empty persistent state';
  }
  const verbs = hasDisk ? 'migrated, restarted or snapshotted' : 'restarted';
  return (
    `its data is deleted when the VM stops, and until then the VM cannot be ${verbs}; ` +
    'to keep the data, copy it or set the reclaim policy of the PersistentVolume to Retain, then stop the VM'
  );
}

/** Describes what becomes of the data of a protected VM: controllers/protection retains the volume. */
function describeRetention(claims: readonly DeletedClaim[]): string {
  const names = claims.flatMap(({ volume }) => (volume === undefined ? [] : [`"${volume}"`])).slice(0, MAX_NAMED);
  return (
    `the VM is protected, so its data stays in PersistentVolume ${names.join(', ')} when the VM stops, with the reclaim ` +
    'policy Retain; until then the VM cannot be restarted. After the stop, remove spec.claimRef of the volume and create ' +
    'the claim again, with spec.volumeName'
  );
}

/** Returns the Event if the deletion is new. Must accompany the status, which then shows the condition. */
export function claimDeletionEvents(world: VmWorld): EventNote[] {
  const condition = claimDeletionCondition(world);
  if (condition === undefined || findClaimDeletion(world.vm) !== undefined) return [];
  return [{ type: 'Warning', reason: CLAIM_DELETION, message: condition.message ?? '' }];
}

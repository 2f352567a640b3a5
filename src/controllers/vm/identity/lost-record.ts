/**
 * Handles VMs whose identity record is lost (api/virtual-machine-identity/record-state.ts). The record is created again
 * at once, and controllers/device-map writes the devices to it. The VM reports the loss in a condition and an Event and
 * does not start before the record is rebuilt. If there is no source to rebuild it from, the start waits for a decision
 * of the user. Pure.
 */
import { NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import {
  acceptsNewLayout,
  GUEST_SOURCE,
  lastRecordUid,
  rebuildCause,
  describeOfflineSource,
} from '#api/virtual-machine-identity/record-state.ts';
import { restoredFrom } from '#api/virtual-machine-identity/restored-vm.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { ownRecord } from '#controllers/vm/identity/identity.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import { findCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { controllerUid, isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';

/** The type of the condition, and the reason of the Event and of the failure to start. */
export const RECORD_LOST = 'IdentityRecordLost';
const RECORD_REBUILT = 'IdentityRecordRebuilt';

/** The source from which a lost record is rebuilt; `user` if the user has to decide. */
type RecordRecovery =
  | { readonly by: 'guest' }
  /** A snapshot or an import; `source` describes it. */
  | { readonly by: 'source'; readonly source: string }
  | { readonly by: 'newLayout' }
  | { readonly by: 'user' };

/** Returns the source, or undefined if the record is not lost. */
function recordRecoveryOf({ vm, vmi, lostRecord }: VmWorld): RecordRecovery | undefined {
  if (lostRecord === undefined || isDeleting(vm)) return undefined;
  const source = describeOfflineSource(vm, lostRecord.snapshot);
  const isRunning = vmi !== undefined && !isFinal(vmi);
  if (!isRunning && source !== undefined) return { by: 'source', source };
  if (acceptsNewLayout(vm)) return { by: 'newLayout' };
  return { by: isRunning ? 'guest' : 'user' };
}

/** Reports whether the record can be created again now, whether or not the VM is to start. */
export function isRebuildable(world: VmWorld): boolean {
  const { vmi, lostRecord } = world;
  if (vmi !== undefined) return lostRecord !== undefined || !isDeleting(vmi);
  // A restore that holds the VM may be about to write the record itself.
  return world.lock === undefined && recordRecoveryOf(world)?.by === 'source';
}

/** Reports whether a start waits for controllers/device-map to rebuild the record. */
export function awaitsRebuild(world: VmWorld): boolean {
  return recordRecoveryOf(world)?.by === 'source' && runActionOf(world).kind === 'start';
}

/** Returns why the VM cannot start: its record is lost and cannot be rebuilt. */
export function findLossRefusal(world: VmWorld): VmFailure | undefined {
  return recordRecoveryOf(world)?.by === 'user' ? { reason: RECORD_LOST, message: decisionMessage(world) } : undefined;
}

/** Returns the condition of a VM whose record is lost. */
export function lossCondition(world: VmWorld): NextCondition | undefined {
  const recovery = recordRecoveryOf(world);
  if (recovery === undefined) return undefined;
  const condition = (reason: string, message: string) =>
    ({ type: RECORD_LOST, status: 'True', reason, message }) as const;
  switch (recovery.by) {
    case 'guest':
      return condition('Rebuilding', `The identity record is lost; it is being ${rebuildCause(GUEST_SOURCE)}`);
    case 'source':
      return condition('Rebuilding', `The identity record is lost; it is being ${rebuildCause(recovery.source)}`);
    case 'newLayout':
      return condition(
        'NewLayoutAccepted',
        'The identity record is lost; the next start gives all devices new addresses',
      );
    case 'user':
      return condition('DecisionRequired', decisionMessage(world));
  }
}

function decisionMessage({ vm }: VmWorld): string {
  const { name } = vm.metadata;
  const lost = lastRecordUid(vm) ?? '';
  const former = restoredFrom(vm);
  const loss =
    former === undefined
      ? `its identity record ${lost} is lost`
      : `it was restored from a backup of the virtual machine with uid ${former}, and its identity record was not`;
  return [
    `Cannot start the VM: ${loss}, and neither a running guest nor a snapshot has its device addresses;`,
    `a start would give all devices new addresses. Restore the record, or accept new addresses with "virtctl identity renew ${name}"`,
    `(annotation ${NEW_LAYOUT_ANNOTATION}: ${lost})`,
  ].join(' ');
}

/** Returns the Events for a record that was just lost or rebuilt. Each is sent once, with the status that shows it. */
export function lossEvents(world: VmWorld): EventNote[] {
  if (isDeleting(world.vm)) return [];
  const before = findCondition((world.vm.status?.conditions ?? []) as Condition[], RECORD_LOST);
  const now = lossCondition(world);
  if (now !== undefined) {
    const isNew = before?.reason !== now.reason;
    return isNew ? [{ type: 'Warning', reason: RECORD_LOST, message: now.message ?? '' }] : [];
  }
  const record = ownRecord(world);
  if (before === undefined || record?.status?.devices === undefined) return [];
  const cause = record.status.history?.at(-1)?.cause ?? '';
  const message = `The identity record was lost and exists again (${cause}); "virtctl identity show ${world.vm.metadata.name}" lists the addresses`;
  return [{ type: 'Warning', reason: RECORD_REBUILT, message }];
}

/** Returns the uid of the record once it has devices: the VM remembers it to notice a loss. */
export function recordUidStatus(world: VmWorld): Pick<VmStatus, 'identityRecordUID'> {
  const { vm } = world;
  const record = ownRecord(world);
  const isFilled = record?.status?.devices !== undefined && controllerUid(record) === vm.metadata.uid;
  const uid = isFilled ? record.metadata.uid : lastRecordUid(vm);
  return uid === undefined ? {} : { identityRecordUID: uid };
}

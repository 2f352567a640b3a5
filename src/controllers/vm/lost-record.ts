/**
 * VMs whose identity record is lost (api/virtual-machine-identity/record-state.ts). The record is made again at once, and
 * controllers/device-map puts the devices into it; the VM says so in a condition and in an Event, and does not start
 * before. Where there is nothing to rebuild it from, the start waits for somebody's decision. Pure.
 */
import { isFinal } from '#api/can.ts';
import { NEW_LAYOUT_ANNOTATION } from '#api/names.ts';
import {
  acceptsNewLayout,
  FROM_GUEST,
  lastRecordUid,
  rebuiltFrom,
  sourceAtRest,
} from '#api/virtual-machine-identity/record-state.ts';
import { restoredFrom } from '#api/virtual-machine-identity/restored-vm.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { Trouble } from '#controllers/vm/conditions.ts';
import { ownRecord } from '#controllers/vm/identity.ts';
import { wantOf } from '#controllers/vm/run-strategy.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { findCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { controllerUid, isDeleting } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';

/** The type of the condition, and the reason of the Event and of the failure to start. */
export const RECORD_LOST = 'IdentityRecordLost';
export const RECORD_REBUILT = 'IdentityRecordRebuilt';

/** How a lost record comes back, or that nobody has decided yet. */
type Recovery =
  | { readonly by: 'guest' }
  /** Snapshot or import, in words. */
  | { readonly by: 'source'; readonly source: string }
  | { readonly by: 'newLayout' }
  | { readonly by: 'nobody' };

/** Returns undefined where the record is not lost. */
export function recoveryOf({ vm, vmi, lost }: VmWorld): Recovery | undefined {
  if (lost === undefined || isDeleting(vm)) return undefined;
  const source = sourceAtRest(vm, lost.snapshot);
  const runs = vmi !== undefined && !isFinal(vmi);
  if (!runs && source !== undefined) return { by: 'source', source };
  if (acceptsNewLayout(vm)) return { by: 'newLayout' };
  return { by: runs ? 'guest' : 'nobody' };
}

/** Reports whether the record can be made again now, with or without a wish to start. */
export function isRebuildable(world: VmWorld): boolean {
  const { vmi, lost } = world;
  if (vmi !== undefined) return lost !== undefined || !isDeleting(vmi);
  // Whoever holds the VM may be about to write the record itself.
  return world.lock === undefined && recoveryOf(world)?.by === 'source';
}

/** Reports whether a start waits for controllers/device-map to rebuild the record. */
export function awaitsRebuild(world: VmWorld): boolean {
  return recoveryOf(world)?.by === 'source' && wantOf(world).to === 'start';
}

/** Returns what keeps a VM from starting whose layout is lost for good. */
export function lossTrouble(world: VmWorld): Trouble | undefined {
  return recoveryOf(world)?.by === 'nobody' ? { reason: RECORD_LOST, message: decisionMessage(world) } : undefined;
}

/** Returns the condition that a VM without its record carries. */
export function lossCondition(world: VmWorld): NextCondition | undefined {
  const recovery = recoveryOf(world);
  if (recovery === undefined) return undefined;
  const stated = (reason: string, message: string) => ({ type: RECORD_LOST, status: 'True', reason, message }) as const;
  switch (recovery.by) {
    case 'guest':
      return stated('Rebuilding', `The identity record is lost; it is being ${rebuiltFrom(FROM_GUEST)}`);
    case 'source':
      return stated('Rebuilding', `The identity record is lost; it is being ${rebuiltFrom(recovery.source)}`);
    case 'newLayout':
      return stated('NewLayoutAccepted', 'The identity record is lost; the next start gives all devices new addresses');
    case 'nobody':
      return stated('DecisionRequired', decisionMessage(world));
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
    `a start would give all devices new addresses. Restore the record, or accept that with "virtctl identity renew ${name}"`,
    `(annotation ${NEW_LAYOUT_ANNOTATION}: ${lost})`,
  ].join(' ');
}

/** Returns the Events about a record that was just lost or has just come back: each once, with the status that shows it. */
export function lossNews(world: VmWorld): EventNote[] {
  if (isDeleting(world.vm)) return [];
  const before = findCondition((world.vm.status?.conditions ?? []) as Condition[], RECORD_LOST);
  const now = lossCondition(world);
  if (now !== undefined) {
    const isNews = before?.reason !== now.reason;
    return isNews ? [{ type: 'Warning', reason: RECORD_LOST, message: now.message ?? '' }] : [];
  }
  const record = ownRecord(world);
  if (before === undefined || record?.status?.devices === undefined) return [];
  const cause = record.status.history?.at(-1)?.cause ?? '';
  const message = `The identity record was lost and is there again (${cause}); "virtctl identity show ${world.vm.metadata.name}" lists the addresses`;
  return [{ type: 'Warning', reason: RECORD_REBUILT, message }];
}

/** Returns the memory of the record: its uid, once it holds devices. */
export function recordMemory(world: VmWorld): Pick<VmStatus, 'identityRecordUID'> {
  const { vm } = world;
  const record = ownRecord(world);
  const isFilled = record?.status?.devices !== undefined && controllerUid(record) === vm.metadata.uid;
  const uid = isFilled ? record.metadata.uid : lastRecordUid(vm);
  return uid === undefined ? {} : { identityRecordUID: uid };
}

/**
 * The state of a VM's identity record: held, lost, or rebuilt.
 *
 *   held   its finalizer keeps it until the VM is gone, even if it is deleted before
 *   lost   the VM has run, and no record has its devices any more
 *
 * A lost record is rebuilt from the first of these that exists: the running guest, the newest snapshot of the VM, the
 * devices of its import. Without any of them the VM starts only after a user has accepted a new layout. Pure.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import { NEW_LAYOUT_ANNOTATION, RECORD_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { restoredFrom, uidsOf } from '#api/virtual-machine-identity/restored-vm.ts';
import type {
  SnapshotIdentity,
  SnapshotVm,
  VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { isDeleting, type KubeObject, type ObjectMeta, type Stored } from '#kube/meta.ts';

type VmWithStatus = Pick<VirtualMachine, 'metadata' | 'status'>;

/** Reports whether our finalizer is on the record. */
export function hasRecordFinalizer({ metadata }: KubeObject): boolean {
  return metadata.finalizers?.includes(RECORD_FINALIZER) === true;
}

/** Reports whether the record is being deleted and our finalizer does not keep it. */
export function isBeingRemoved(record: Stored<VirtualMachineIdentity>): boolean {
  return isDeleting(record) && !hasRecordFinalizer(record);
}

/**
 * Returns the uid of the record that last held the devices of the VM; undefined if none ever did. For a VM that was
 * restored from a backup without its status, returns the uid of the original VM instead.
 */
export function lastRecordUid({ metadata, status }: VmWithStatus): string | undefined {
  return status?.identityRecordUID ?? restoredFrom({ metadata });
}

/** Reports whether the devices of the VM were recorded once and are lost. `record` is the VM's own, if there is one. */
export function isRecordLost(vm: VmWithStatus, record: VirtualMachineIdentity | undefined): boolean {
  return lastRecordUid(vm) !== undefined && record?.status?.devices === undefined;
}

/** Reports whether a user has allowed the VM to start with new addresses after the loss of this record. */
export function acceptsNewLayout(vm: VmWithStatus): boolean {
  const lost = lastRecordUid(vm);
  return lost !== undefined && vm.metadata.annotations?.[NEW_LAYOUT_ANNOTATION] === lost;
}

/** The record of a VM in one of its snapshots. */
export interface SnapshotRecord {
  /** The name of the VirtualMachineSnapshot. */
  readonly name: string;
  /** RFC 3339. */
  readonly takenAt: string;
  readonly identity: SnapshotIdentity;
}

/** Returns the newest record in the contents that have the devices of this VM, or of the VM that it was restored from. */
export function findNewestRecord(
  vm: Stored<VirtualMachine>,
  contents: readonly Stored<VirtualMachineSnapshotContent>[],
): SnapshotRecord | undefined {
  const uids: readonly unknown[] = uidsOf(vm);
  const found = contents.flatMap((content): SnapshotRecord[] => {
    const { virtualMachineIdentity: identity } = content.spec.source;
    // Users can write the mark that names the original VM: it must not open contents of other namespaces.
    const isOfVm = uids.includes(vmOfContent(content).uid) && content.metadata.namespace === vm.metadata.namespace;
    if (!isOfVm || !Array.isArray(identity?.status?.devices)) return [];
    const name = content.spec.virtualMachineSnapshotName ?? content.metadata.name;
    return [{ name, takenAt: content.metadata.creationTimestamp, identity }];
  });
  return found.toSorted(byAge).at(-1);
}

function byAge(a: SnapshotRecord, b: SnapshotRecord): number {
  return compareText(`${a.takenAt} ${a.name}`, `${b.takenAt} ${b.name}`);
}

/** Returns name and uid of the VM of a content. Users can create contents, and the schema does not require either. */
export function vmOfContent({ spec }: VirtualMachineSnapshotContent): Pick<ObjectMeta, 'name' | 'uid'> {
  const { virtualMachine } = spec.source as { virtualMachine?: Partial<SnapshotVm> };
  return virtualMachine?.metadata ?? {};
}

/**
 * Describes the source from which the record of a VM without a running guest is rebuilt; undefined if there is none.
 */
export function describeOfflineSource(
  vm: Stored<VirtualMachine>,
  snapshot: SnapshotRecord | undefined,
): string | undefined {
  if (snapshot !== undefined) return describeSnapshotSource(snapshot);
  const imported = importedDevicesOf(vm);
  return imported === undefined || 'fault' in imported ? undefined : IMPORT_SOURCE;
}

export const GUEST_SOURCE = 'the running guest';
export const IMPORT_SOURCE = 'the devices of its import';
export const describeSnapshotSource = ({ name, takenAt }: SnapshotRecord) => `snapshot ${name} of ${takenAt}`;

/** The cause of the entries in which the devices of an import are recorded. */
export const IMPORT_CAUSE = 'the import of the VM';

/** Returns the cause in the history entry of a rebuilt record. */
export const rebuildCause = (source: string) => `rebuilt from ${source}`;

/** Selects the volumes of a VM for a snapshot, and checks whether the VM is ready for it. Pure. */
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import type { HeldVm, SourceVolume } from '#controllers/snapshot/snapshot-world.ts';
import { stateBackupName } from '#controllers/shared/persistent-state/state-backup.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import { DEFAULT_SNAPSHOT_CLASS, type VolumeSnapshotClass } from '#kube/volume-snapshot-kinds.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';

/** Returns the class for copies of a volume: the default class of its driver, else the first by name. */
export function snapshotClassFor(
  volume: PersistentVolume | undefined,
  classes: readonly Stored<VolumeSnapshotClass>[],
): string | undefined {
  const driver = volume?.spec.csi?.driver;
  if (driver === undefined) return undefined;
  const names = (fit: readonly Stored<VolumeSnapshotClass>[]) => fit.map(({ metadata }) => metadata.name).sort();
  const fitting = classes.filter((candidate) => candidate.driver === driver);
  const defaults = fitting.filter(({ metadata }) => metadata.annotations?.[DEFAULT_SNAPSHOT_CLASS] === 'true');
  return names(defaults)[0] ?? names(fitting)[0];
}

interface IncludedVolume {
  readonly name: string;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Returns the volumes to copy, with the persistent state. A VM that never ran has no state yet. */
export function includedVolumes({ vm, volumes, state }: HeldVm): IncludedVolume[] {
  const disks = volumes.flatMap(({ volume, claim, snapshotClass }) =>
    claim === undefined || snapshotClass === undefined ? [] : [{ name: volume.name, claim }],
  );
  if (state === undefined || state.snapshotClass === undefined || !isBound(state)) return disks;
  return [...disks, { name: stateBackupName(vm), claim: state.claim }];
}

/**
 * Reports whether the snapshot leaves out data. Read-only volumes and those that are new at each start do not count.
 */
export function leavesOutData({ volumes, state }: HeldVm): boolean {
  if (state !== undefined && isBound(state) && state.snapshotClass === undefined) return true;
  return volumes.some(
    ({ volume, snapshotClass }) =>
      snapshotClass === undefined && (volume.persistentVolumeClaim !== undefined || volume.hostDisk !== undefined),
  );
}

/** Returns the claim that is being deleted, as a message, or undefined. Such a claim can never be copied. */
export function findDeletedClaim({ volumes, state }: HeldVm): string | undefined {
  for (const { claim, snapshotClass } of [...volumes, ...(state === undefined ? [] : [state])]) {
    if (claim !== undefined && snapshotClass !== undefined && isDeleting(claim)) {
      return `PersistentVolumeClaim "${claim.metadata.name}" is being deleted`;
    }
  }
  return undefined;
}

/** Returns why the snapshot cannot be taken yet, or undefined if it can. */
export function checkHeldVm(held: HeldVm): string | undefined {
  const refusal = checkInstance(held) ?? checkRecord(held);
  if (refusal !== undefined) return refusal;
  for (const view of held.volumes) {
    const obstacle = checkVolume(view);
    if (obstacle !== undefined) return obstacle;
  }
  return checkState(held);
}

/** Checks the claim of the state. An unbound claim is empty and does not matter, unless it has a data source. */
function checkState({ state }: HeldVm): string | undefined {
  if (state === undefined) return undefined;
  const { name, annotations } = state.claim.metadata;
  if (annotations?.[UPLOAD_ANNOTATION] === 'true') return `PersistentVolumeClaim "${name}" waits for its content`;
  return isBound(state) || state.claim.spec.dataSource === undefined
    ? undefined
    : `PersistentVolumeClaim "${name}" is not bound`;
}

function isBound({ claim, persistentVolume }: Pick<SourceVolume, 'claim' | 'persistentVolume'>): boolean {
  return claim?.status?.phase === 'Bound' && persistentVolume !== undefined;
}

/** Checks the instance. While it starts or stops, neither the guest nor the node agent alone can copy the disks. */
function checkInstance({ vm, vmi }: HeldVm): string | undefined {
  if (vmi === undefined || isFinal(vmi)) return undefined;
  const { phase } = vmi.status ?? {};
  if (controllerUid(vmi) !== vm.metadata.uid)
    return 'A VirtualMachineInstance of this name does not belong to the VirtualMachine';
  if (isDeleting(vmi)) return 'The VirtualMachineInstance is stopping';
  return phase === 'Running' ? undefined : `The VirtualMachineInstance is ${phase ?? 'new'}, not yet Running`;
}

/**
 * Checks that the identity record has all devices of the guest, so that a restored VM has them at the same addresses.
 * An old node agent reports no device hash; then there is nothing to wait for.
 */
function checkRecord({ vmi, identity }: HeldVm): string | undefined {
  const { deviceHash, phase } = vmi?.status ?? {};
  if (deviceHash === undefined || phase !== 'Running') return undefined;
  return identity?.status?.deviceHash === deviceHash
    ? undefined
    : 'The identity record does not have all devices of the guest yet';
}

function checkVolume({ volume, claim, persistentVolume }: SourceVolume): string | undefined {
  const name = volume.persistentVolumeClaim?.claimName;
  if (name === undefined) return undefined;
  if (claim === undefined) return `PersistentVolumeClaim "${name}" does not exist`;
  return isBound({ claim, persistentVolume }) ? undefined : `PersistentVolumeClaim "${name}" is not bound`;
}

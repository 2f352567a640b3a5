/** Which volumes of a VM a snapshot can hold, and what has to be waited for before it is taken. Pure. */
import { isFinal } from '#api/can.ts';
import { UPLOAD_ANNOTATION } from '#api/disk-stream.ts';
import type { HeldVm, VolumeView } from '#controllers/snapshot/snapshot-world.ts';
import { stateBackupName } from '#controllers/snapshot/state-backup.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import { DEFAULT_SNAPSHOT_CLASS, type VolumeSnapshotClass } from '#kube/volume-snapshot-kinds.ts';

/** The class by which a volume is copied: the default one of its driver, else the first by name. */
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

export interface IncludedVolume {
  readonly name: string;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Also the state of a VM that keeps some; where it never ran, there is none yet. */
export function includedVolumes({ vm, volumes, state }: HeldVm): IncludedVolume[] {
  const disks = volumes.flatMap(({ volume, claim, snapshotClass }) =>
    claim === undefined || snapshotClass === undefined ? [] : [{ name: volume.name, claim }],
  );
  if (state === undefined || state.snapshotClass === undefined || !isBound(state)) return disks;
  return [...disks, { name: stateBackupName(vm), claim: state.claim }];
}

/** Whether data of the VM stays behind. What is read by all, or made anew at each start, is none of its own. */
export function leavesData({ volumes, state }: HeldVm): boolean {
  if (state !== undefined && isBound(state) && state.snapshotClass === undefined) return true;
  return volumes.some(
    ({ volume, snapshotClass }) =>
      snapshotClass === undefined && (volume.persistentVolumeClaim !== undefined || volume.hostDisk !== undefined),
  );
}

/** Why the snapshot cannot be taken right now; undefined when nothing is in its way. */
export function obstacleOf(held: HeldVm): string | undefined {
  const instance = instanceObstacle(held) ?? recordObstacle(held);
  if (instance !== undefined) return instance;
  for (const view of held.volumes) {
    const obstacle = claimObstacle(view);
    if (obstacle !== undefined) return obstacle;
  }
  return stateObstacle(held);
}

/** One that is still to be bound has nothing in it yet, unless something is about to be put there. */
function stateObstacle({ state }: HeldVm): string | undefined {
  if (state === undefined) return undefined;
  const { name, annotations } = state.claim.metadata;
  if (annotations?.[UPLOAD_ANNOTATION] === 'true') return `PersistentVolumeClaim "${name}" waits for its content`;
  return isBound(state) || state.claim.spec.dataSource === undefined
    ? undefined
    : `PersistentVolumeClaim "${name}" is not bound`;
}

function isBound({ claim, persistentVolume }: Pick<VolumeView, 'claim' | 'persistentVolume'>): boolean {
  return claim?.status?.phase === 'Bound' && persistentVolume !== undefined;
}

/** While an instance starts or stops, its disks are neither open in a guest that could be asked nor at rest. */
function instanceObstacle({ vm, vmi }: HeldVm): string | undefined {
  if (vmi === undefined || isFinal(vmi)) return undefined;
  const { phase } = vmi.status ?? {};
  if (controllerUid(vmi) !== vm.metadata.uid) return 'A VirtualMachineInstance of this name belongs to somebody else';
  if (isDeleting(vmi)) return 'The VirtualMachineInstance is stopping';
  return phase === 'Running' ? undefined : `The VirtualMachineInstance is ${phase ?? 'new'}, not yet Running`;
}

/**
 * A snapshot holds the record as well: restored, every device is where the guest has it now. A node that tells no hash
 * is an old one, from which nothing is learned.
 */
function recordObstacle({ vmi, identity }: HeldVm): string | undefined {
  const { deviceHash, phase } = vmi?.status ?? {};
  if (deviceHash === undefined || phase !== 'Running') return undefined;
  return identity?.status?.deviceHash === deviceHash
    ? undefined
    : 'The identity record does not have all devices of the guest yet';
}

function claimObstacle({ volume, claim, persistentVolume }: VolumeView): string | undefined {
  const name = volume.persistentVolumeClaim?.claimName;
  if (name === undefined) return undefined;
  if (claim === undefined) return `PersistentVolumeClaim "${name}" does not exist`;
  return isBound({ claim, persistentVolume }) ? undefined : `PersistentVolumeClaim "${name}" is not bound`;
}

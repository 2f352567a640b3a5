/** Builds the VolumeSnapshotContent for a VolumeSnapshot of a claim, and checks its preconditions. Pure. */
import {
  LOCAL_DRIVER,
  SNAPSHOT_DATA_FINALIZER,
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_NODE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
  VOLUME_COPY_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { stateKeysOfClaim } from '#api/storage/persistent-state.ts';
import { isMarkedAsState, SNAPSHOT_STATE_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { isLocalVolume } from '#controllers/shared/local-storage/local-volume.ts';
import {
  volumeSnapshotContentName,
  type VolumeSnapshotWorld,
} from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';
import {
  VOLUME_SNAPSHOT_CONTENTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';

/** The annotations of the snapshot set. */
const COPIED_ANNOTATIONS = [SNAPSHOT_SET_ANNOTATION, SNAPSHOT_SET_SIZE_ANNOTATION, SNAPSHOT_INSTANCE_ANNOTATION];
/** Prefix of parameters for the CSI sidecars, which drivers ignore. */
const FOREIGN_PARAMETER = 'csi.storage.k8s.io/';

interface SnapshotInput {
  readonly snapshotClass: Stored<VolumeSnapshotClass>;
  readonly volume: Stored<PersistentVolume>;
  /** True if the claim holds the persistent state of a VM rather than a disk. */
  readonly isState: boolean;
}

/** Returns the input for the content, or why the snapshot cannot be taken now. */
export function findSnapshotInput(world: VolumeSnapshotWorld): SnapshotInput | string {
  const snapshotClass = findClass(world);
  if (typeof snapshotClass === 'string') return snapshotClass;
  const volume = findVolume(world);
  return typeof volume === 'string' ? volume : { snapshotClass, volume, isState: holdsState(world) };
}

/**
 * Reports whether the claim holds state. One with the name of a state claim but no mark may be a disk: the snapshot
 * decides.
 */
function holdsState({ snapshot, claim }: VolumeSnapshotWorld): boolean {
  if (claim === undefined || stateKeysOfClaim(claim).length === 0) return false;
  return isMarkedAsState(claim) || snapshot.metadata.annotations?.[SNAPSHOT_STATE_ANNOTATION] === 'true';
}

function findClass({
  snapshot,
  snapshotClass,
  defaultClasses,
}: VolumeSnapshotWorld): Stored<VolumeSnapshotClass> | string {
  const { volumeSnapshotClassName: name } = snapshot.spec;
  if (name === undefined && defaultClasses.length > 1) {
    return `${defaultClasses.length} default snapshot classes were found`;
  }
  const found = name === undefined ? defaultClasses[0] : snapshotClass;
  if (found === undefined) {
    const classText =
      name === undefined ? 'default VolumeSnapshotClass' : `VolumeSnapshotClass ${JSON.stringify(name)}`;
    return `${classText} not found`;
  }
  const unknown = Object.keys(found.parameters ?? {}).find((key) => !key.startsWith(FOREIGN_PARAMETER));
  if (unknown === undefined) return found;
  return `VolumeSnapshotClass ${JSON.stringify(found.metadata.name)}: parameters.${unknown} is unknown`;
}

function findVolume({ snapshot, claim, volume }: VolumeSnapshotWorld): Stored<PersistentVolume> | string {
  const quoted = JSON.stringify(snapshot.spec.source.persistentVolumeClaimName ?? '');
  if (claim === undefined) return `PersistentVolumeClaim ${quoted} not found`;
  if (claim.metadata.deletionTimestamp !== undefined) return `PersistentVolumeClaim ${quoted} is being deleted`;
  const bound = claim.status?.phase === 'Bound' && volume?.spec.claimRef?.uid === claim.metadata.uid;
  if (volume === undefined || !bound) return `PersistentVolumeClaim ${quoted} is not bound to a volume`;
  const name = JSON.stringify(volume.metadata.name);
  if (!isLocalVolume(volume)) return `PersistentVolume ${name} does not belong to the driver ${LOCAL_DRIVER}`;
  if (volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER)) {
    return `PersistentVolume ${name} is still being filled from a snapshot`;
  }
  return volume;
}

export function buildVolumeSnapshotContent(
  snapshot: Stored<VolumeSnapshot>,
  { snapshotClass, volume, isState }: SnapshotInput,
  copier: string | undefined,
): VolumeSnapshotContent {
  const { apiVersion, kind, metadata } = snapshot;
  const { namespace, name, uid } = metadata;
  return {
    apiVersion: apiVersionOf(VOLUME_SNAPSHOT_CONTENTS),
    kind: VOLUME_SNAPSHOT_CONTENTS.kind,
    metadata: {
      name: volumeSnapshotContentName(snapshot),
      annotations: {
        ...buildAnnotations(snapshot, volume.metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? copier),
        ...(isState && { [SNAPSHOT_STATE_ANNOTATION]: 'true' }),
      },
      finalizers: [SNAPSHOT_DATA_FINALIZER],
    },
    spec: {
      deletionPolicy: snapshotClass.deletionPolicy,
      driver: LOCAL_DRIVER,
      source: { volumeHandle: volume.spec.csi?.volumeHandle ?? volume.metadata.name },
      sourceVolumeMode: volume.spec.volumeMode ?? 'Filesystem',
      volumeSnapshotClassName: snapshotClass.metadata.name,
      volumeSnapshotRef: { apiVersion, kind, namespace, name, uid },
    },
  };
}

function buildAnnotations({ metadata }: Stored<VolumeSnapshot>, node: string | undefined): Record<string, string> {
  const annotations: Record<string, string> = {};
  for (const key of COPIED_ANNOTATIONS) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) annotations[key] = value;
  }
  if (node !== undefined) annotations[SNAPSHOT_NODE_ANNOTATION] = node;
  return annotations;
}

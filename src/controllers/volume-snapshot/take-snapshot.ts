/** A VolumeSnapshot of a claim becomes a content: what must hold before, and what the content is made of. Pure. */
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
import { stateKeysOfClaim } from '#api/persistent-state.ts';
import { isMarkedAsState, SNAPSHOT_STATE_ANNOTATION } from '#api/snapshot-state.ts';
import { isOurs } from '#controllers/storage/local-volume.ts';
import { contentNameFor, type SnapshotWorld } from '#controllers/volume-snapshot/snapshot-world.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';
import {
  VOLUME_SNAPSHOT_CONTENTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';

/** What the copies of one moment know each other by. */
const COPIED_ANNOTATIONS = [SNAPSHOT_SET_ANNOTATION, SNAPSHOT_SET_SIZE_ANNOTATION, SNAPSHOT_INSTANCE_ANNOTATION];
/** Parameters that the parts of the CSI project read for themselves; they say nothing to drivers. */
const FOREIGN_PARAMETER = 'csi.storage.k8s.io/';

export interface Takeable {
  readonly snapshotClass: Stored<VolumeSnapshotClass>;
  readonly volume: Stored<PersistentVolume>;
  /** The claim holds the state of a VM and no disk. */
  readonly isState: boolean;
}

/** What is needed to take it, or for people why it cannot be taken now. */
export function takeable(world: SnapshotWorld): Takeable | string {
  const snapshotClass = classOf(world);
  if (typeof snapshotClass === 'string') return snapshotClass;
  const volume = volumeOf(world);
  return typeof volume === 'string' ? volume : { snapshotClass, volume, isState: isOfState(world) };
}

/** A claim that has the name of one and no mark may be that of a disk: then whoever takes the snapshot says what it is. */
function isOfState({ snapshot, claim }: SnapshotWorld): boolean {
  if (claim === undefined || stateKeysOfClaim(claim).length === 0) return false;
  return isMarkedAsState(claim) || snapshot.metadata.annotations?.[SNAPSHOT_STATE_ANNOTATION] === 'true';
}

function classOf({ snapshot, snapshotClass, defaultClasses }: SnapshotWorld): Stored<VolumeSnapshotClass> | string {
  const { volumeSnapshotClassName: name } = snapshot.spec;
  if (name === undefined && defaultClasses.length > 1) {
    return `${defaultClasses.length} default snapshot classes were found`;
  }
  const found = name === undefined ? defaultClasses[0] : snapshotClass;
  if (found === undefined) {
    const which = name === undefined ? 'default VolumeSnapshotClass' : `VolumeSnapshotClass ${JSON.stringify(name)}`;
    return `${which} not found`;
  }
  const unknown = Object.keys(found.parameters ?? {}).find((key) => !key.startsWith(FOREIGN_PARAMETER));
  if (unknown === undefined) return found;
  return `VolumeSnapshotClass ${JSON.stringify(found.metadata.name)}: parameters.${unknown} is not known`;
}

function volumeOf({ snapshot, claim, volume }: SnapshotWorld): Stored<PersistentVolume> | string {
  const quoted = JSON.stringify(snapshot.spec.source.persistentVolumeClaimName ?? '');
  if (claim === undefined) return `PersistentVolumeClaim ${quoted} not found`;
  if (claim.metadata.deletionTimestamp !== undefined) return `PersistentVolumeClaim ${quoted} is being deleted`;
  const bound = claim.status?.phase === 'Bound' && volume?.spec.claimRef?.uid === claim.metadata.uid;
  if (volume === undefined || !bound) return `PersistentVolumeClaim ${quoted} is not bound to a volume`;
  const name = JSON.stringify(volume.metadata.name);
  if (!isOurs(volume)) return `PersistentVolume ${name} is not one of the driver ${LOCAL_DRIVER}`;
  if (volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER)) {
    return `PersistentVolume ${name} is itself still being filled from a snapshot`;
  }
  return volume;
}

export function buildContent(
  snapshot: Stored<VolumeSnapshot>,
  { snapshotClass, volume, isState }: Takeable,
  copier: string | undefined,
): VolumeSnapshotContent {
  const { apiVersion, kind, metadata } = snapshot;
  const { namespace, name, uid } = metadata;
  return {
    apiVersion: apiVersionOf(VOLUME_SNAPSHOT_CONTENTS),
    kind: VOLUME_SNAPSHOT_CONTENTS.kind,
    metadata: {
      name: contentNameFor(snapshot),
      annotations: {
        ...annotationsOf(snapshot, volume.metadata.annotations?.[VOLUME_NODE_ANNOTATION] ?? copier),
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

function annotationsOf({ metadata }: Stored<VolumeSnapshot>, node: string | undefined): Record<string, string> {
  const annotations: Record<string, string> = {};
  for (const key of COPIED_ANNOTATIONS) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) annotations[key] = value;
  }
  if (node !== undefined) annotations[SNAPSHOT_NODE_ANNOTATION] = node;
  return annotations;
}

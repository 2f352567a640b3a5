/**
 * What is done about one VirtualMachineSnapshotContent: the copies of its disks are asked for, and it is held as long
 * as a restore needs it. The copies go with it, as the garbage of an owner that is gone. Pure.
 */
import {
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
  VM_SNAPSHOT_CONTENT_FINALIZER,
} from '#api/names.ts';
import { NOT_QUIESCED_ANNOTATION, SNAPSHOT_STATE_ANNOTATION } from '#api/snapshot-state.ts';
import { type VirtualMachineSnapshot, wasTaken } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import {
  idleVolumesIn,
  INDICATIONS_ANNOTATION,
  indicationsIn,
  instanceOf,
} from '#controllers/snapshot/build-content.ts';
import { contentStatusOf, isToBeMade } from '#controllers/snapshot/content-status.ts';
import type { ContentWorld, CopyView } from '#controllers/snapshot/content-world.ts';
import { isStateBackup } from '#controllers/snapshot/state-backup.ts';
import { apiVersionOf, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import { MAX_CHANGES, NOTHING, type Change, type Plan } from '#runtime/plan.ts';
import { holdBy, releaseFrom } from '#runtime/finalizer.ts';

const TYPE = VIRTUAL_MACHINE_SNAPSHOT_CONTENTS;

export function decideContent(world: ContentWorld): Plan {
  const { content } = world;
  if (isDeleting(content)) return isNeeded(world) ? NOTHING : releaseContent(world);
  const hold = holdBy(VM_SNAPSHOT_CONTENT_FINALIZER, TYPE, content);
  if (hold !== undefined) return { changes: [hold] };
  const changes = [...correction(world), ...missingCopies(world)];
  return { changes: changes.slice(0, MAX_CHANGES), status: contentStatusOf(world) };
}

/** An agent was there when it began, and did not freeze the guest when it came to it. */
function correction({ content, copies }: ContentWorld): Change[] {
  const isFrozen = copies.every(
    ({ volumeSnapshot }) => !volumeSnapshot?.metadata.annotations?.[NOT_QUIESCED_ANNOTATION],
  );
  const said = indicationsIn(content);
  if (isFrozen || !said.includes('GuestAgent')) return [];
  const { name, namespace, uid } = content.metadata;
  const indications = said.map((indication) => (indication === 'GuestAgent' ? 'QuiesceTimeout' : indication));
  const body = { metadata: { annotations: { [INDICATIONS_ANNOTATION]: indications.join(',') } } };
  const why = 'the guest was not frozen for it';
  return [{ do: 'patch', type: TYPE, name: { namespace, name }, uid, patch: { type: 'merge', body }, why }];
}

/** Nobody restores what never was whole; a restore that waits for that would also wait for the VM to be let go. */
function isNeeded({ snapshot, isRestored }: ContentWorld): boolean {
  return isRestored && (snapshot === undefined || wasTaken(snapshot));
}

function releaseContent({ content }: ContentWorld): Plan {
  const release = releaseFrom(VM_SNAPSHOT_CONTENT_FINALIZER, TYPE, content, 'no restore needs it');
  return release === undefined ? NOTHING : { changes: [release] };
}

function missingCopies(world: ContentWorld): Change[] {
  const { snapshot } = world;
  if (snapshot === undefined) return [];
  return world.copies
    .filter((copy) => isToBeMade(world, copy))
    .map((copy) => {
      const isState = isStateBackup(world.content.spec, copy.backup);
      const annotations = {
        ...setAnnotations(world, snapshot, copy),
        ...(isState && { [SNAPSHOT_STATE_ANNOTATION]: 'true' }),
      };
      const object = buildVolumeSnapshot(world, copy, annotations);
      const why = `Successfully created VolumeSnapshot ${object.metadata.name}`;
      return { do: 'create', type: VOLUME_SNAPSHOTS, object, reason: 'SuccessfulVolumeSnapshotCreate', why };
    });
}

function buildVolumeSnapshot(
  { content }: ContentWorld,
  { backup, snapshotClass }: CopyView,
  annotations: Record<string, string>,
): VolumeSnapshot {
  const { name, namespace, uid } = content.metadata;
  const owner: OwnerReference = { apiVersion: apiVersionOf(TYPE), kind: TYPE.kind, name, uid, controller: true };
  return {
    apiVersion: apiVersionOf(VOLUME_SNAPSHOTS),
    kind: VOLUME_SNAPSHOTS.kind,
    metadata: { name: backup.volumeSnapshotName, namespace, ownerReferences: [owner], annotations },
    spec: {
      source: { persistentVolumeClaimName: backup.persistentVolumeClaim.metadata.name },
      ...(snapshotClass === undefined ? {} : { volumeSnapshotClassName: snapshotClass }),
    },
  };
}

/** A disk that the guest of a running VM does not have open is no part of the set: it is the same at any moment. */
function setAnnotations(
  { content, copies }: ContentWorld,
  { metadata }: Stored<VirtualMachineSnapshot>,
  { backup }: CopyView,
): Record<string, string> {
  const idle = idleVolumesIn(content);
  if (idle.includes(backup.volumeName)) return {};
  const size = copies.filter((copy) => !idle.includes(copy.backup.volumeName)).length;
  const instance = instanceOf(content);
  return {
    [SNAPSHOT_SET_ANNOTATION]: metadata.uid,
    [SNAPSHOT_SET_SIZE_ANNOTATION]: String(size),
    ...(instance === undefined ? {} : { [SNAPSHOT_INSTANCE_ANNOTATION]: instance }),
  };
}

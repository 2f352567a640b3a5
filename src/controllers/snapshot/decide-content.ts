/**
 * Decides the next step of one VirtualMachineSnapshotContent: requests the copies of the disks, and keeps the content
 * while a restore needs it. The garbage collector deletes the copies after the content. Pure.
 */
import {
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
  VM_SNAPSHOT_CONTENT_FINALIZER,
} from '#api/names.ts';
import { NOT_QUIESCED_ANNOTATION, SNAPSHOT_STATE_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { type VirtualMachineSnapshot, isSnapshotComplete } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOT_CONTENTS } from '#api/virtual-machine-snapshot-content/kind.ts';
import {
  idleVolumesOfContent,
  INDICATIONS_ANNOTATION,
  indicationsOfContent,
  instanceUidOf,
} from '#controllers/snapshot/build-content.ts';
import { buildContentStatus, mustRequestCopy } from '#controllers/snapshot/content-status.ts';
import type { ContentWorld, VolumeCopyView } from '#controllers/snapshot/content-world.ts';
import { isStateBackup } from '#controllers/shared/persistent-state/state-backup.ts';
import { apiVersionOf, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { MAX_CHANGES, EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';
import { requireFinalizer, releaseFinalizer } from '#runtime/finalizer.ts';

const TYPE = VIRTUAL_MACHINE_SNAPSHOT_CONTENTS;

export function decideContent(world: ContentWorld): Plan {
  const { content } = world;
  if (isDeleting(content))
    return isNeeded(world) ? { changes: [], requeueAfterMs: USE_RECHECK_MS } : releaseContent(world);
  const hold = requireFinalizer(VM_SNAPSHOT_CONTENT_FINALIZER, TYPE, content);
  if (hold !== undefined) return { changes: [hold] };
  const changes = [...correctIndications(world), ...requestCopies(world)];
  return { changes: changes.slice(0, MAX_CHANGES), status: buildContentStatus(world) };
}

/** Corrects the indications if the guest agent was connected, but did not freeze the guest for the copy. */
function correctIndications({ content, copies }: ContentWorld): Change[] {
  const isFrozen = copies.every(
    ({ volumeSnapshot }) => !volumeSnapshot?.metadata.annotations?.[NOT_QUIESCED_ANNOTATION],
  );
  const recorded = indicationsOfContent(content);
  if (isFrozen || !recorded.includes('GuestAgent')) return [];
  const { name, namespace, uid } = content.metadata;
  const indications = recorded.map((indication) => (indication === 'GuestAgent' ? 'QuiesceTimeout' : indication));
  const body = { metadata: { annotations: { [INDICATIONS_ANNOTATION]: indications.join(',') } } };
  const why = 'the guest agent did not freeze the filesystems for the snapshot';
  return [{ do: 'patch', type: TYPE, name: { namespace, name }, uid, patch: { type: 'merge', body }, why }];
}

/**
 * Reports whether a restore needs the content. A snapshot that was never complete cannot be restored; keeping it would
 * be a deadlock, because the restore waits for the VM, which the snapshot holds.
 */
function isNeeded({ snapshot, hasRestore }: ContentWorld): boolean {
  return hasRestore && (snapshot === undefined || isSnapshotComplete(snapshot));
}

function releaseContent({ content }: ContentWorld): Plan {
  const release = releaseFinalizer(VM_SNAPSHOT_CONTENT_FINALIZER, TYPE, content, 'no restore needs the content');
  return release === undefined ? EMPTY_PLAN : { changes: [release] };
}

function requestCopies(world: ContentWorld): Change[] {
  const { snapshot } = world;
  if (snapshot === undefined) return [];
  return world.copies
    .filter((copy) => mustRequestCopy(world, copy))
    .map((copy) => {
      const isState = isStateBackup(world.content.spec, copy.backup);
      const annotations = {
        ...snapshotSetAnnotations(world, snapshot, copy),
        ...(isState && { [SNAPSHOT_STATE_ANNOTATION]: 'true' }),
      };
      const object = buildVolumeSnapshot(world, copy, annotations);
      const why = `Successfully created VolumeSnapshot ${object.metadata.name}`;
      return { do: 'create', type: VOLUME_SNAPSHOTS, object, reason: 'SuccessfulVolumeSnapshotCreate', why };
    });
}

function buildVolumeSnapshot(
  { content }: ContentWorld,
  { backup, snapshotClass }: VolumeCopyView,
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

/** Returns the annotations of the snapshot set. A disk that the running guest does not use is not in the set. */
function snapshotSetAnnotations(
  { content, copies }: ContentWorld,
  { metadata }: Stored<VirtualMachineSnapshot>,
  { backup }: VolumeCopyView,
): Record<string, string> {
  const idle = idleVolumesOfContent(content);
  if (idle.includes(backup.volumeName)) return {};
  const size = copies.filter((copy) => !idle.includes(copy.backup.volumeName)).length;
  const instance = instanceUidOf(content);
  return {
    [SNAPSHOT_SET_ANNOTATION]: metadata.uid,
    [SNAPSHOT_SET_SIZE_ANNOTATION]: String(size),
    ...(instance === undefined ? {} : { [SNAPSHOT_INSTANCE_ANNOTATION]: instance }),
  };
}

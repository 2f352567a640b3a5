/**
 * Decides the next step of one VolumeSnapshot of our driver, like the snapshot-controller of Kubernetes. Pure.
 *
 *   new ──claim bound to our volume──► finalizer added ──► content created ──► bound: reports the status of the content
 *    └──anything missing: status.error, until that changes                       │
 *                                            content lost: status.error; the snapshot is never taken again
 *   deleted ──no volume is created from it──► content deleted (Retain: kept) ──► finalizers removed
 *
 * The node agent copies and removes the data; decide-volume-snapshot-content.ts handles the contents.
 */
import { NOT_QUIESCED_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { refersTo } from '#controllers/shared/local-storage/snapshot-source.ts';
import {
  errorStatus,
  statusEvents,
  type VolumeSnapshotStatus,
  volumeSnapshotStatusFrom,
} from '#controllers/volume-snapshot/volume-snapshot-status.ts';
import {
  isForOtherDriver,
  isForOurDriver,
  type VolumeSnapshotWorld,
} from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import {
  buildVolumeSnapshotContent,
  findSnapshotInput,
} from '#controllers/volume-snapshot/build-volume-snapshot-content.ts';
import type { Stored } from '#kube/meta.ts';
import {
  BOUND_SNAPSHOT_FINALIZER,
  SOURCE_SNAPSHOT_FINALIZER,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';

const OWN_FINALIZERS: ReadonlySet<string> = new Set([BOUND_SNAPSHOT_FINALIZER, SOURCE_SNAPSHOT_FINALIZER]);

export function decideVolumeSnapshot(world: VolumeSnapshotWorld): Plan {
  const { snapshot, content } = world;
  if (snapshot.metadata.deletionTimestamp !== undefined) return isForOtherDriver(world) ? EMPTY_PLAN : remove(world);
  if (!isForOurDriver(world)) return EMPTY_PLAN;
  return content === undefined ? withoutContent(world) : withContent(world, content);
}

function withoutContent(world: VolumeSnapshotWorld): Plan {
  const { snapshot } = world;
  const { volumeSnapshotContentName: named } = snapshot.spec.source;
  // A second content would be from another point in time under the same name.
  if (snapshot.status?.boundVolumeSnapshotContentName) return reportError(world, 'VolumeSnapshotContent is missing');
  if (named !== undefined) return reportError(world, `VolumeSnapshotContent ${JSON.stringify(named)} not found`);
  return takeSnapshot(world);
}

function takeSnapshot(world: VolumeSnapshotWorld): Plan {
  const { snapshot, copier } = world;
  const input = findSnapshotInput(world);
  if (typeof input === 'string') return reportError(world, `failed to take snapshot: ${input}`);
  const { namespace, name } = snapshot.metadata;
  const object = buildVolumeSnapshotContent(snapshot, input, copier);
  const why = `Waiting for a snapshot ${namespace}/${name} to be created by the CSI driver.`;
  const create: Change = { do: 'create', type: VOLUME_SNAPSHOT_CONTENTS, object, reason: 'CreatingSnapshot', why };
  return { changes: [...holdSnapshot(world, input.snapshotClass.metadata.name), create] };
}

function withContent(world: VolumeSnapshotWorld, content: Stored<VolumeSnapshotContent>): Plan {
  const { snapshot } = world;
  const { namespace, name, uid } = content.spec.volumeSnapshotRef;
  const isNamed = namespace === snapshot.metadata.namespace && name === snapshot.metadata.name;
  if (!isNamed || (uid && uid !== snapshot.metadata.uid)) {
    const quoted = JSON.stringify(content.metadata.name);
    return reportError(world, `VolumeSnapshotContent ${quoted} refers to another VolumeSnapshot`);
  }
  const changes = holdSnapshot(world);
  // The finalizer comes before the binding, so that a bound snapshot is never deleted without this controller.
  if (!uid || !isHeld(world))
    return { changes: [...changes, ...(uid ? [] : [bindContent(content, snapshot.metadata.uid)])] };
  return {
    ...reportStatus(world, volumeSnapshotStatusFrom(content, world)),
    changes: [...changes, ...copyNotQuiesced(world, content)],
  };
}

/** Copies the annotation in which the node reports that the guest was not frozen. */
function copyNotQuiesced({ snapshot }: VolumeSnapshotWorld, { metadata }: Stored<VolumeSnapshotContent>): Change[] {
  const value = metadata.annotations?.[NOT_QUIESCED_ANNOTATION];
  if (value === undefined || snapshot.metadata.annotations?.[NOT_QUIESCED_ANNOTATION] === value) return [];
  const body = { metadata: { annotations: { [NOT_QUIESCED_ANNOTATION]: value } } };
  return [patchSnapshot(snapshot, body, 'the guest was not frozen for the snapshot')];
}

/** Sets the finalizers that the snapshot needs, and the class that was selected for it. */
function holdSnapshot({ snapshot, isClaimed, isCopied }: VolumeSnapshotWorld, className?: string): Change[] {
  const { finalizers = [], resourceVersion } = snapshot.metadata;
  const isUsed = isClaimed || isCopied;
  const kept = finalizers.filter((finalizer) => isUsed || finalizer !== SOURCE_SNAPSHOT_FINALIZER);
  const wanted = [BOUND_SNAPSHOT_FINALIZER, ...(isUsed ? [SOURCE_SNAPSHOT_FINALIZER] : [])];
  const next = [...new Set([...kept, ...wanted])];
  const needsClass = className !== undefined && snapshot.spec.volumeSnapshotClassName === undefined;
  if (next.length === finalizers.length && next.every((one) => finalizers.includes(one)) && !needsClass) return [];
  const spec = needsClass ? { spec: { volumeSnapshotClassName: className } } : {};
  const why = isUsed ? 'volumes are created from the snapshot' : 'the content must be deleted before the snapshot';
  return [patchSnapshot(snapshot, { metadata: { resourceVersion, finalizers: next }, ...spec }, why)];
}

function isHeld({ snapshot }: VolumeSnapshotWorld): boolean {
  return snapshot.metadata.finalizers?.includes(BOUND_SNAPSHOT_FINALIZER) === true;
}

/** Binds a content that a user created for the name of this snapshot. */
function bindContent({ metadata }: Stored<VolumeSnapshotContent>, uid: string): Change {
  const { name, resourceVersion } = metadata;
  const body = { metadata: { resourceVersion }, spec: { volumeSnapshotRef: { uid } } };
  const target = { type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid: metadata.uid };
  return { do: 'patch', ...target, patch: { type: 'merge', body }, why: 'the VolumeSnapshot of the content exists' };
}

function remove({ snapshot, content, isClaimed, isCopied }: VolumeSnapshotWorld): Plan {
  const { finalizers = [], resourceVersion } = snapshot.metadata;
  // The provisioner refuses claims that were created after the deletion, so they do not delay it.
  if (isCopied || (isClaimed && finalizers.includes(SOURCE_SNAPSHOT_FINALIZER)))
    return { changes: [], requeueAfterMs: USE_RECHECK_MS };
  if (content !== undefined && refersTo(content, snapshot) && content.spec.deletionPolicy === 'Delete') {
    const { name, uid, deletionTimestamp } = content.metadata;
    if (deletionTimestamp !== undefined) return EMPTY_PLAN;
    const why = `Deleted VolumeSnapshotContent ${name}`;
    return { changes: [{ do: 'delete', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, why }] };
  }
  const remaining = finalizers.filter((finalizer) => !OWN_FINALIZERS.has(finalizer));
  if (remaining.length === finalizers.length) return EMPTY_PLAN;
  const body = { metadata: { resourceVersion, finalizers: remaining } };
  return { changes: [patchSnapshot(snapshot, body, 'the content is deleted or retained')] };
}

function patchSnapshot({ metadata }: VolumeSnapshotWorld['snapshot'], body: object, why: string): Change {
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body };
  return { do: 'patch', type: VOLUME_SNAPSHOTS, name: { namespace, name }, uid, patch, why };
}

function reportError(world: VolumeSnapshotWorld, message: string): Plan {
  return { changes: [], ...reportStatus(world, errorStatus(world.snapshot, message, world.now)) };
}

function reportStatus(
  { snapshot }: VolumeSnapshotWorld,
  status: VolumeSnapshotStatus,
): Pick<Plan, 'status' | 'events'> {
  return { status: { ...status }, events: statusEvents(snapshot, status) };
}

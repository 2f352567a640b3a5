/**
 * What is done about one VolumeSnapshot of ours, as the snapshot-controller of a cluster does it. Pure.
 *
 *   new ──claim bound to a volume of ours──► held by our finalizer ──► content made ──► bound: says what the content says
 *    └──anything missing: status.error, until that changes                                │
 *                                                       content gone: said, and never taken a second time
 *   deleted ──nobody is being made from it──► content deleted, awaited (Retain: left) ──► finalizers dropped ──► gone
 *
 * The copy, its end and its removal are for the node agent; contents themselves for decide-snapshot-content.ts.
 */
import { NOT_QUIESCED_ANNOTATION } from '#api/snapshot-state.ts';
import { refersTo } from '#controllers/storage/snapshot-source.ts';
import { faultyStatus, newsOf, type SnapshotStatus, statusFrom } from '#controllers/volume-snapshot/snapshot-status.ts';
import { isForOthers, isForUs, type SnapshotWorld } from '#controllers/volume-snapshot/snapshot-world.ts';
import { buildContent, takeable } from '#controllers/volume-snapshot/take-snapshot.ts';
import type { Stored } from '#kube/meta.ts';
import {
  BOUND_SNAPSHOT_FINALIZER,
  SOURCE_SNAPSHOT_FINALIZER,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';
import { NOTHING, type Change, type Plan } from '#runtime/plan.ts';

const OWN_FINALIZERS: ReadonlySet<string> = new Set([BOUND_SNAPSHOT_FINALIZER, SOURCE_SNAPSHOT_FINALIZER]);

export function decideVolumeSnapshot(world: SnapshotWorld): Plan {
  const { snapshot, content } = world;
  if (snapshot.metadata.deletionTimestamp !== undefined) return isForOthers(world) ? NOTHING : remove(world);
  if (!isForUs(world)) return NOTHING;
  return content === undefined ? withoutContent(world) : withContent(world, content);
}

function withoutContent(world: SnapshotWorld): Plan {
  const { snapshot } = world;
  const { volumeSnapshotContentName: named } = snapshot.spec.source;
  // Taking it again would show another moment under the same name.
  if (snapshot.status?.boundVolumeSnapshotContentName) return fault(world, 'VolumeSnapshotContent is missing');
  if (named !== undefined) return fault(world, `VolumeSnapshotContent ${JSON.stringify(named)} not found`);
  return take(world);
}

function take(world: SnapshotWorld): Plan {
  const { snapshot, copier } = world;
  const found = takeable(world);
  if (typeof found === 'string') return fault(world, `failed to take snapshot: ${found}`);
  const { namespace, name } = snapshot.metadata;
  const object = buildContent(snapshot, found, copier);
  const why = `Waiting for a snapshot ${namespace}/${name} to be created by the CSI driver.`;
  const make: Change = { do: 'create', type: VOLUME_SNAPSHOT_CONTENTS, object, reason: 'CreatingSnapshot', why };
  return { changes: [...hold(world, found.snapshotClass.metadata.name), make] };
}

function withContent(world: SnapshotWorld, content: Stored<VolumeSnapshotContent>): Plan {
  const { snapshot } = world;
  const { namespace, name, uid } = content.spec.volumeSnapshotRef;
  const meant = namespace === snapshot.metadata.namespace && name === snapshot.metadata.name;
  if (!meant || (uid && uid !== snapshot.metadata.uid)) {
    const quoted = JSON.stringify(content.metadata.name);
    return fault(world, `VolumeSnapshotContent ${quoted} refers to another VolumeSnapshot`);
  }
  const held = hold(world);
  // First the finalizer, then the binding: what is bound is never lost without our hearing of it.
  if (!uid || !isHeld(world)) return { changes: [...held, ...(uid ? [] : [takeOver(content, snapshot.metadata.uid)])] };
  return { ...told(world, statusFrom(content, world)), changes: [...held, ...passOn(world, content)] };
}

/** What the node had to say about the moment of the copy. */
function passOn({ snapshot }: SnapshotWorld, { metadata }: Stored<VolumeSnapshotContent>): Change[] {
  const said = metadata.annotations?.[NOT_QUIESCED_ANNOTATION];
  if (said === undefined || snapshot.metadata.annotations?.[NOT_QUIESCED_ANNOTATION] === said) return [];
  const body = { metadata: { annotations: { [NOT_QUIESCED_ANNOTATION]: said } } };
  return [patched(snapshot, body, 'the guest was not frozen for it')];
}

/** The finalizers that it needs, and the class that was taken for it. */
function hold({ snapshot, isClaimed, isCopied }: SnapshotWorld, className?: string): Change[] {
  const { finalizers = [], resourceVersion } = snapshot.metadata;
  const used = isClaimed || isCopied;
  const kept = finalizers.filter((finalizer) => used || finalizer !== SOURCE_SNAPSHOT_FINALIZER);
  const wanted = [BOUND_SNAPSHOT_FINALIZER, ...(used ? [SOURCE_SNAPSHOT_FINALIZER] : [])];
  const next = [...new Set([...kept, ...wanted])];
  const classless = className !== undefined && snapshot.spec.volumeSnapshotClassName === undefined;
  if (next.length === finalizers.length && next.every((one) => finalizers.includes(one)) && !classless) return [];
  const spec = classless ? { spec: { volumeSnapshotClassName: className } } : {};
  const why = used ? 'volumes are made from it' : 'its content goes with it';
  return [patched(snapshot, { metadata: { resourceVersion, finalizers: next }, ...spec }, why)];
}

function isHeld({ snapshot }: SnapshotWorld): boolean {
  return snapshot.metadata.finalizers?.includes(BOUND_SNAPSHOT_FINALIZER) === true;
}

/** A content that somebody made for the name becomes that of this very object. */
function takeOver({ metadata }: Stored<VolumeSnapshotContent>, uid: string): Change {
  const { name, resourceVersion } = metadata;
  const body = { metadata: { resourceVersion }, spec: { volumeSnapshotRef: { uid } } };
  const target = { type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid: metadata.uid };
  return { do: 'patch', ...target, patch: { type: 'merge', body }, why: 'its VolumeSnapshot is there' };
}

function remove({ snapshot, content, isClaimed, isCopied }: SnapshotWorld): Plan {
  const { finalizers = [], resourceVersion } = snapshot.metadata;
  // Claims that came later are refused by the provisioner and hold up nothing.
  if (isCopied || (isClaimed && finalizers.includes(SOURCE_SNAPSHOT_FINALIZER))) return NOTHING;
  if (content !== undefined && refersTo(content, snapshot) && content.spec.deletionPolicy === 'Delete') {
    const { name, uid, deletionTimestamp } = content.metadata;
    if (deletionTimestamp !== undefined) return NOTHING;
    const why = `its VolumeSnapshot ${snapshot.metadata.namespace}/${snapshot.metadata.name} is deleted`;
    return { changes: [{ do: 'delete', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, why }] };
  }
  const left = finalizers.filter((finalizer) => !OWN_FINALIZERS.has(finalizer));
  if (left.length === finalizers.length) return NOTHING;
  const body = { metadata: { resourceVersion, finalizers: left } };
  return { changes: [patched(snapshot, body, 'nothing is left that goes with it')] };
}

function patched({ metadata }: SnapshotWorld['snapshot'], body: object, why: string): Change {
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body };
  return { do: 'patch', type: VOLUME_SNAPSHOTS, name: { namespace, name }, uid, patch, why };
}

function fault(world: SnapshotWorld, message: string): Plan {
  return { changes: [], ...told(world, faultyStatus(world.snapshot, message, world.now)) };
}

function told({ snapshot }: SnapshotWorld, status: SnapshotStatus): Pick<Plan, 'status' | 'events'> {
  return { status: { ...status }, events: newsOf(snapshot, status) };
}

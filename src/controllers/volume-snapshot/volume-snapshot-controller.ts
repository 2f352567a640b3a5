/**
 * Snapshots of volumes of `selfsame.io/local`: does what the snapshot-controller and the csi-snapshotter do on a cluster,
 * as far as objects go. VolumeSnapshots become contents (decide-volume-snapshot.ts), contents find a node
 * (decide-snapshot-content.ts); the data are copied and removed by the node agents. Volumes from snapshots are made by
 * controllers/storage.
 */
import { LOCAL_DRIVER, SNAPSHOT_INSTANCE_ANNOTATION } from '#api/names.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { consumedBy, consumerNode, indexConsumers } from '#controllers/storage/consumers.ts';
import { canCopy, firstCopier, indexCopiers } from '#controllers/storage/copy-node.ts';
import { snapshotKeysOf, sourceSnapshotKeys } from '#controllers/storage/snapshot-source.ts';
import {
  awaitedNode,
  type ContentWorld,
  decideSnapshotContent,
  isAwaited,
} from '#controllers/volume-snapshot/decide-snapshot-content.ts';
import { decideVolumeSnapshot } from '#controllers/volume-snapshot/decide-volume-snapshot.ts';
import { SnapshotUse } from '#controllers/volume-snapshot/snapshot-use.ts';
import { contentNameFor, type SnapshotWorld } from '#controllers/volume-snapshot/snapshot-world.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolume, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import {
  DEFAULT_SNAPSHOT_CLASS,
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { liveLook } from '#runtime/live-look.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';

const CONCURRENCY = 10;
/** VolumeSnapshots that are not bound yet, by the key of the claim that they are to be taken of. */
const UNBOUND_BY_CLAIM = 'unbound-by-claim';
/** VolumeSnapshots that are not bound yet, by the name of their class, '' for none. */
const UNBOUND_BY_CLASS = 'unbound-by-class';
/** VolumeSnapshots that are not bound yet, by the word itself. */
const UNBOUND = 'unbound';
/** Volumes by the key of the claim that they are for. */
const VOLUMES_BY_CLAIM = 'volumes-by-claim';
/** Contents for which a node still has something to do: by the word itself, and by the volume that they are of. */
const AWAITED = 'awaited';
const AWAITED_BY_VOLUME = 'awaited-by-volume';

export const volumeSnapshotController: PlaneController = {
  account: 'volume-snapshot-controller',
  eventSource: 'volume-snapshot-controller',
  start(parts) {
    return [startController(snapshotDefinition(parts), parts), startController(contentDefinition(parts), parts)];
  },
};

function snapshotDefinition({ client, informer, clock }: ControllerParts): ControllerDefinition<SnapshotWorld> {
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  const classes = informer(VOLUME_SNAPSHOT_CLASSES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  snapshots.addIndex(UNBOUND_BY_CLAIM, (snapshot) => (isBound(snapshot) ? [] : claimKeys(snapshot)));
  snapshots.addIndex(UNBOUND_BY_CLASS, (snapshot) =>
    isBound(snapshot) ? [] : [snapshot.spec.volumeSnapshotClassName ?? ''],
  );
  snapshots.addIndex(UNBOUND, (snapshot) => (isBound(snapshot) ? [] : [UNBOUND]));
  indexConsumers(pods);
  indexCopiers(nodes);
  const look = liveLook(client);
  const use = new SnapshotUse(claims, volumes, contents);
  const waitingFor = (claimKey: string) => snapshots.byIndex(UNBOUND_BY_CLAIM, claimKey).map(objectKey);

  /** One that ought to be there is asked for: the cache of contents may be behind that of VolumeSnapshots. */
  async function contentOf(snapshot: Stored<VolumeSnapshot>, signal: AbortSignal) {
    const { metadata, spec, status } = snapshot;
    const name = spec.source.volumeSnapshotContentName ?? contentNameFor(snapshot);
    const known = contents.get(name);
    const awaited = Boolean(status?.boundVolumeSnapshotContentName) || metadata.deletionTimestamp !== undefined;
    return known ?? (awaited ? await look(VOLUME_SNAPSHOT_CONTENTS, { name }, { signal }) : undefined);
  }

  /** Only what is still to be taken asks for its claim, and for a node. */
  function sourceOf(snapshot: Stored<VolumeSnapshot>): Pick<SnapshotWorld, 'claim' | 'volume' | 'copier'> {
    const [claimKey] = claimKeys(snapshot);
    const claim = claimKey === undefined ? undefined : claims.get(claimKey);
    if (claimKey === undefined || claim === undefined) return {};
    const volume = claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined;
    const shared = volume?.spec.csi?.volumeAttributes?.['scope'] === 'shared';
    const instance = snapshot.metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
    const user = shared ? consumerNode(pods, claimKey, instance) : undefined;
    return { claim, volume, ...(shared ? { copier: user ?? firstCopier(nodes) } : {}) };
  }

  return defineController<SnapshotWorld>({
    name: 'volume-snapshots',
    type: VOLUME_SNAPSHOTS,
    concurrency: CONCURRENCY,
    sources: [
      source(snapshots),
      source(contents, snapshotKeysOf),
      source(classes, ({ metadata }) =>
        [metadata.name, ''].flatMap((name) => snapshots.byIndex(UNBOUND_BY_CLASS, name).map(objectKey)),
      ),
      source(claims, (claim) => [...waitingFor(objectKey(claim)), ...sourceSnapshotKeys(claim)]),
      source(volumes, (volume) => [...claimKeysOfVolume(volume).flatMap(waitingFor), ...use.usedBy(volume)]),
      source(pods, (pod) => consumedBy(pod).flatMap(waitingFor)),
      source(nodes, () => snapshots.byIndex(UNBOUND, UNBOUND).map(objectKey), { part: canCopy }),
    ],
    async observe(key, { signal }) {
      const snapshot = snapshots.get(key);
      if (snapshot === undefined) return undefined;
      const content = await contentOf(snapshot, signal);
      const { volumeSnapshotClassName: named } = snapshot.spec;
      return {
        snapshot,
        content,
        ...(named === undefined ? {} : { snapshotClass: classes.get(named) }),
        defaultClasses: named === undefined ? classes.list().filter(isOurDefault) : [],
        ...(content === undefined ? sourceOf(snapshot) : {}),
        isClaimed: use.isClaimed(key),
        isCopied: use.isCopied(key, content),
        now: timestamp(clock.now()),
      };
    },
    decide: decideVolumeSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}

function contentDefinition({ client, informer }: ControllerParts): ControllerDefinition<ContentWorld> {
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  indexConsumers(pods);
  indexCopiers(nodes);
  const look = liveLook(client);
  contents.addIndex(AWAITED, (content) => (isAwaited(content) ? [AWAITED] : []));
  contents.addIndex(AWAITED_BY_VOLUME, (content) =>
    isAwaited(content) ? [content.spec.source.volumeHandle ?? ''] : [],
  );
  volumes.addIndex(VOLUMES_BY_CLAIM, claimKeysOfVolume);
  const awaited = (index: string, value: string) => contents.byIndex(index, value).map(objectKey);

  async function snapshotExists(content: Stored<VolumeSnapshotContent>, signal: AbortSignal): Promise<boolean> {
    const { driver, deletionPolicy, volumeSnapshotRef } = content.spec;
    const { namespace, name, uid } = volumeSnapshotRef;
    // Asked only where the answer makes a difference.
    const matters = driver === LOCAL_DRIVER && deletionPolicy === 'Delete';
    if (!uid || name === undefined || !matters || content.metadata.deletionTimestamp !== undefined) return true;
    const target = { namespace, name };
    if (snapshots.get(keyOf(target))?.metadata.uid === uid) return true;
    return (await look(VOLUME_SNAPSHOTS, target, { signal }))?.metadata.uid === uid;
  }

  function copierOf({ metadata }: VolumeSnapshotContent, volume: PersistentVolume | undefined): string | undefined {
    const [claimKey] = volume === undefined ? [] : claimKeysOfVolume(volume);
    const instance = metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
    const consumer = claimKey === undefined ? undefined : consumerNode(pods, claimKey, instance);
    return consumer !== undefined && nodes.get(consumer) !== undefined ? consumer : firstCopier(nodes);
  }

  return defineController<ContentWorld>({
    name: 'volume-snapshot-contents',
    type: VOLUME_SNAPSHOT_CONTENTS,
    concurrency: CONCURRENCY,
    sources: [
      source(contents),
      source(snapshots, (snapshot) => [snapshot.spec.source.volumeSnapshotContentName ?? contentNameFor(snapshot)], {
        part: ({ metadata }) => metadata.uid,
      }),
      source(nodes, () => awaited(AWAITED, AWAITED), { part: canCopy }),
      source(volumes, ({ metadata }) => awaited(AWAITED_BY_VOLUME, metadata.name)),
      source(pods, (pod) =>
        consumedBy(pod)
          .flatMap((key) => volumes.byIndex(VOLUMES_BY_CLAIM, key))
          .flatMap(({ metadata }) => awaited(AWAITED_BY_VOLUME, metadata.name)),
      ),
    ],
    async observe(key, { signal }) {
      const content = contents.get(key);
      if (content === undefined) return undefined;
      // Volumes of ours have the name of their handle.
      const volume = volumes.get(content.spec.source.volumeHandle ?? '');
      const node = awaitedNode(content);
      const nodeExists = node !== undefined && nodes.get(node) !== undefined;
      return {
        content,
        snapshotExists: await snapshotExists(content, signal),
        volume,
        nodeExists,
        ...(nodeExists || !isAwaited(content) ? {} : { copier: copierOf(content, volume) }),
      };
    },
    decide: decideSnapshotContent,
    subject: ({ content }) => content,
  });
}

function isBound({ status }: VolumeSnapshot): boolean {
  return Boolean(status?.boundVolumeSnapshotContentName);
}

function isOurDefault({ driver, metadata }: VolumeSnapshotClass): boolean {
  return driver === LOCAL_DRIVER && metadata.annotations?.[DEFAULT_SNAPSHOT_CLASS] === 'true';
}

function claimKeys({ metadata: { namespace }, spec }: Stored<VolumeSnapshot>): string[] {
  const { persistentVolumeClaimName: name } = spec.source;
  return name === undefined ? [] : [keyOf({ namespace, name })];
}

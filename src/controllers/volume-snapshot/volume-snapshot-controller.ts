/**
 * The controllers of VolumeSnapshots of `selfsame.io/local`, in place of the snapshot-controller and csi-snapshotter of
 * a cluster. They create contents for VolumeSnapshots (decide-volume-snapshot.ts) and select their nodes
 * (decide-volume-snapshot-content.ts). The node agents copy and remove the data; controllers/storage creates volumes
 * from snapshots.
 */
import { LOCAL_DRIVER, SNAPSHOT_INSTANCE_ANNOTATION } from '#api/names.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/shared/indexes/claim-keys.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { consumedClaimKeys, consumerNode, indexConsumers } from '#controllers/shared/local-storage/consumers.ts';
import { canCopy, firstCopier, indexCopiers } from '#controllers/shared/local-storage/copy-node.ts';
import { createNodeCheck } from '#controllers/shared/local-storage/node-check.ts';
import { volumeSnapshotKeysOf, sourceSnapshotKeys } from '#controllers/shared/local-storage/snapshot-source.ts';
import {
  awaitedNode,
  type VolumeSnapshotContentWorld,
  decideVolumeSnapshotContent,
  waitsForNode,
} from '#controllers/volume-snapshot/decide-volume-snapshot-content.ts';
import { decideVolumeSnapshot } from '#controllers/volume-snapshot/decide-volume-snapshot.ts';
import { SnapshotUse } from '#controllers/volume-snapshot/snapshot-use.ts';
import {
  volumeSnapshotContentName,
  type VolumeSnapshotWorld,
} from '#controllers/volume-snapshot/volume-snapshot-world.ts';
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
import { createLiveReader } from '#runtime/live-reader.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';

const CONCURRENCY = 10;
/** Index of unbound VolumeSnapshots by the key of their source claim. */
const UNBOUND_BY_CLAIM = 'unbound-by-claim';
/** Index of unbound VolumeSnapshots by the name of their class, '' for none. */
const UNBOUND_BY_CLASS = 'unbound-by-class';
/** Index of unbound VolumeSnapshots. All have the same key: the name of the index. */
const UNBOUND = 'unbound';
/** Index of volumes by the key of their claim. */
const VOLUMES_BY_CLAIM = 'volumes-by-claim';
/** Indexes of the contents that wait for a node: all of them with one key, and by their source volume. */
const AWAITED = 'awaited';
const AWAITED_BY_VOLUME = 'awaited-by-volume';

export const volumeSnapshotController: PlaneController = {
  account: 'volume-snapshot-controller',
  eventSource: 'volume-snapshot-controller',
  start(parts) {
    return [startController(defineVolumeSnapshots(parts), parts), startController(defineContents(parts), parts)];
  },
};

function defineVolumeSnapshots({
  client,
  informer,
  clock,
}: ControllerParts): ControllerDefinition<VolumeSnapshotWorld> {
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
  const readLive = createLiveReader(client);
  const use = new SnapshotUse(claims, volumes, contents, client);
  const keysOfClaim = (claimKey: string) => snapshots.byIndex(UNBOUND_BY_CLAIM, claimKey).map(objectKey);

  /** Reads a content that should exist live: the cache of contents may be behind that of VolumeSnapshots. */
  async function findContent(snapshot: Stored<VolumeSnapshot>, signal: AbortSignal) {
    const { metadata, spec, status } = snapshot;
    const name = spec.source.volumeSnapshotContentName ?? volumeSnapshotContentName(snapshot);
    const cached = contents.get(name);
    const awaited = Boolean(status?.boundVolumeSnapshotContentName) || metadata.deletionTimestamp !== undefined;
    return cached ?? (awaited ? await readLive(VOLUME_SNAPSHOT_CONTENTS, { name }, { signal }) : undefined);
  }

  /** Returns the source of a snapshot that is not taken yet, and a node that can copy it. */
  function observeSource(snapshot: Stored<VolumeSnapshot>): Pick<VolumeSnapshotWorld, 'claim' | 'volume' | 'copier'> {
    const [claimKey] = claimKeys(snapshot);
    const claim = claimKey === undefined ? undefined : claims.get(claimKey);
    if (claimKey === undefined || claim === undefined) return {};
    const volume = claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined;
    const shared = volume?.spec.csi?.volumeAttributes?.['scope'] === 'shared';
    const instance = snapshot.metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
    const user = shared ? consumerNode(pods, claimKey, instance) : undefined;
    return { claim, volume, ...(shared ? { copier: user ?? firstCopier(nodes) } : {}) };
  }

  return defineController<VolumeSnapshotWorld>({
    name: 'volume-snapshots',
    type: VOLUME_SNAPSHOTS,
    concurrency: CONCURRENCY,
    sources: [
      source(snapshots),
      source(contents, volumeSnapshotKeysOf),
      source(classes, ({ metadata }) =>
        [metadata.name, ''].flatMap((name) => snapshots.byIndex(UNBOUND_BY_CLASS, name).map(objectKey)),
      ),
      source(claims, (claim) => [...keysOfClaim(objectKey(claim)), ...sourceSnapshotKeys(claim)]),
      source(volumes, (volume) => [...claimKeysOfVolume(volume).flatMap(keysOfClaim), ...use.sourcesOf(volume)]),
      source(pods, (pod) => consumedClaimKeys(pod).flatMap(keysOfClaim)),
      source(nodes, () => snapshots.byIndex(UNBOUND, UNBOUND).map(objectKey), { part: canCopy }),
    ],
    async observe(key, { signal }) {
      const snapshot = snapshots.get(key);
      if (snapshot === undefined) return undefined;
      const content = await findContent(snapshot, signal);
      const { volumeSnapshotClassName: named } = snapshot.spec;
      return {
        snapshot,
        content,
        ...(named === undefined ? {} : { snapshotClass: classes.get(named) }),
        defaultClasses: named === undefined ? classes.list().filter(isOurDefault) : [],
        ...(content === undefined ? observeSource(snapshot) : {}),
        isClaimed: use.isClaimed(key),
        isCopied: await use.isCopied(snapshot, content, { signal }),
        now: timestamp(clock.now()),
      };
    },
    decide: decideVolumeSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}

function defineContents({ client, informer }: ControllerParts): ControllerDefinition<VolumeSnapshotContentWorld> {
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  indexConsumers(pods);
  indexCopiers(nodes);
  const readLive = createLiveReader(client);
  const isPresent = createNodeCheck(nodes, client);
  contents.addIndex(AWAITED, (content) => (waitsForNode(content) ? [AWAITED] : []));
  contents.addIndex(AWAITED_BY_VOLUME, (content) =>
    waitsForNode(content) ? [content.spec.source.volumeHandle ?? ''] : [],
  );
  volumes.addIndex(VOLUMES_BY_CLAIM, claimKeysOfVolume);
  const awaitedKeys = (index: string, value: string) => contents.byIndex(index, value).map(objectKey);

  async function snapshotExists(content: Stored<VolumeSnapshotContent>, signal: AbortSignal): Promise<boolean> {
    const { driver, deletionPolicy, volumeSnapshotRef } = content.spec;
    const { namespace, name, uid } = volumeSnapshotRef;
    // Reads live only if the result can change the decision.
    const matters = driver === LOCAL_DRIVER && deletionPolicy === 'Delete';
    if (!uid || name === undefined || !matters || content.metadata.deletionTimestamp !== undefined) return true;
    const target = { namespace, name };
    if (snapshots.get(keyOf(target))?.metadata.uid === uid) return true;
    return (await readLive(VOLUME_SNAPSHOTS, target, { signal }))?.metadata.uid === uid;
  }

  function selectCopier({ metadata }: VolumeSnapshotContent, volume: PersistentVolume | undefined): string | undefined {
    const [claimKey] = volume === undefined ? [] : claimKeysOfVolume(volume);
    const instance = metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION];
    const consumer = claimKey === undefined ? undefined : consumerNode(pods, claimKey, instance);
    return consumer !== undefined && nodes.get(consumer) !== undefined ? consumer : firstCopier(nodes);
  }

  return defineController<VolumeSnapshotContentWorld>({
    name: 'volume-snapshot-contents',
    type: VOLUME_SNAPSHOT_CONTENTS,
    concurrency: CONCURRENCY,
    sources: [
      source(contents),
      source(
        snapshots,
        (snapshot) => [snapshot.spec.source.volumeSnapshotContentName ?? volumeSnapshotContentName(snapshot)],
        {
          part: ({ metadata }) => metadata.uid,
        },
      ),
      source(nodes, () => awaitedKeys(AWAITED, AWAITED), { part: canCopy }),
      source(volumes, ({ metadata }) => awaitedKeys(AWAITED_BY_VOLUME, metadata.name)),
      source(pods, (pod) =>
        consumedClaimKeys(pod)
          .flatMap((key) => volumes.byIndex(VOLUMES_BY_CLAIM, key))
          .flatMap(({ metadata }) => awaitedKeys(AWAITED_BY_VOLUME, metadata.name)),
      ),
    ],
    async observe(key, { signal }) {
      const content = contents.get(key);
      if (content === undefined) return undefined;
      // Our volumes are named like their handle.
      const volume = volumes.get(content.spec.source.volumeHandle ?? '');
      const node = awaitedNode(content);
      const nodeExists = node !== undefined && (await isPresent(node, { signal }));
      return {
        content,
        snapshotExists: await snapshotExists(content, signal),
        volume,
        nodeExists,
        ...(nodeExists || !waitsForNode(content) ? {} : { copier: selectCopier(content, volume) }),
      };
    },
    decide: decideVolumeSnapshotContent,
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

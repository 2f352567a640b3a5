/**
 * The provisioner `selfsame.io/local`: creates, expands and deletes PersistentVolumes, like an external provisioner of
 * Kubernetes. It only writes objects; the node agents watch the volumes and create, expand and remove the files.
 */
import { storageSizeOf, type StorageSize } from '#api/storage/storage-size.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { LOCAL_DRIVER, LOCAL_PROVISIONER } from '#api/names.ts';
import { objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/shared/indexes/claim-keys.ts';
import { type LocalClaimWorld, decideLocalClaim } from '#controllers/storage/decide-local-claim.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { consumedClaimKeys, consumerNode, indexConsumers } from '#controllers/shared/local-storage/consumers.ts';
import { canCopy, firstCopier, indexCopiers } from '#controllers/shared/local-storage/copy-node.ts';
import { createNodeCheck } from '#controllers/shared/local-storage/node-check.ts';
import {
  awaitedCopyNode,
  awaitedDataNode,
  awaitedLeftoverNode,
  decideLocalVolume,
  canFillAnywhere,
  isUnneeded,
  type LocalVolumeWorld,
} from '#controllers/storage/decide-local-volume.ts';
import { localVolumeName } from '#controllers/shared/local-storage/local-volume.ts';
import {
  CLAIMS_BY_SOURCE,
  type SnapshotSource,
  volumeSnapshotKeysOf,
  sourceSnapshotKeys,
} from '#controllers/shared/local-storage/snapshot-source.ts';
import { parseSnapshotHandle } from '#api/storage/snapshot-handle.ts';
import {
  NODES,
  type Node,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  PODS,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';
import { LiveUse } from '#runtime/live-use.ts';

const CONCURRENCY = 10;
/** Index of claims by the name of their class. */
const BY_CLASS = 'storage-class';
/** Index of claims without a volume. All have the same key: the name of the index. */
const UNBOUND = 'unbound';
/** Index of volumes under deletion by the node that has to remove their data. */
const AWAITED_DATA_NODE = 'awaited-home';
/** Index of volumes with a leftover copy by the node that has to remove it. */
const AWAITED_LEFTOVER_NODE = 'awaited-leftover';
/** Index of contents that are not complete by their volume. */
const UNFINISHED_BY_VOLUME = 'unfinished-by-volume';
/** Index of volumes that are not filled yet by the node that fills them. */
const AWAITED_COPY_NODE = 'awaited-copy-node';
/** Index of volumes that any node can fill. All have the same key: the name of the index. */
const FILLABLE_ANYWHERE = 'filled-anywhere';

export const storageController: PlaneController = {
  account: 'storage-controller',
  eventSource: LOCAL_PROVISIONER,
  start(parts) {
    return [startController(defineClaims(parts), parts), startController(defineVolumes(parts), parts)];
  },
};

function defineClaims({ client, informer, clock }: ControllerParts): ControllerDefinition<LocalClaimWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  const nodeExists = createNodeCheck(nodes, client);
  indexConsumers(pods);
  indexCopiers(nodes);
  claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
  claims.addIndex(UNBOUND, ({ spec }) => (spec.volumeName ? [] : [UNBOUND]));
  claims.addIndex(BY_CLASS, ({ spec }) => (spec.storageClassName ? [spec.storageClassName] : []));

  /** Returns the claims without a volume that have this source. Those with a volume do not need it any more. */
  function claimsFrom(snapshotKey: string): string[] {
    const waiting = claims.byIndex(CLAIMS_BY_SOURCE, snapshotKey).filter(({ spec }) => !spec.volumeName);
    return waiting.map(objectKey);
  }

  function sourceOf([snapshotKey]: readonly string[]): SnapshotSource {
    const snapshot = snapshotKey === undefined ? undefined : snapshots.get(snapshotKey);
    const content = snapshot?.status?.boundVolumeSnapshotContentName;
    return { snapshot, content: content === undefined ? undefined : contents.get(content) };
  }

  async function sourceNodeExists({ content }: SnapshotSource, options: { signal: AbortSignal }): Promise<boolean> {
    const place = parseSnapshotHandle(content?.status?.snapshotHandle ?? '');
    return place?.scope !== 'node' || (await nodeExists(place.node, options));
  }

  return defineController<LocalClaimWorld>({
    name: 'storage-claims',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      source(claims),
      source(volumes, claimKeysOfVolume),
      source(classes, ({ metadata }) => claims.byIndex(BY_CLASS, metadata.name).map(objectKey)),
      source(pods, consumedClaimKeys),
      source(snapshots, (snapshot) => claimsFrom(objectKey(snapshot))),
      source(contents, (content) => volumeSnapshotKeysOf(content).flatMap(claimsFrom)),
      source(nodes, () => claims.byIndex(UNBOUND, UNBOUND).map(objectKey), {
        part: (node) => [canCopy(node), storageSizeOf(node)],
      }),
    ],
    async observe(key, options) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const { storageClassName, volumeName } = claim.spec;
      const snapshotSource = sourceOf(volumeName ? [] : sourceSnapshotKeys(claim));
      const selected = claim.metadata.annotations?.[SELECTED_NODE];
      return {
        claim,
        storageClass: storageClassName ? classes.get(storageClassName) : undefined,
        volume: volumes.get(volumeName || localVolumeName(claim)),
        selectedNodeExists: selected !== undefined && (await nodeExists(selected, options)),
        consumerNode: consumerNode(pods, key),
        source: snapshotSource,
        sourceNodeExists: await sourceNodeExists(snapshotSource, options),
        sizes: sizesOf(nodes.list()),
        ...(snapshotSource.content === undefined ? {} : { copier: firstCopier(nodes) }),
        now: timestamp(clock.now()),
      };
    },
    decide: decideLocalClaim,
    subject: ({ claim }) => claim,
  });
}

function sizesOf(nodes: readonly Stored<Node>[]): Map<string, StorageSize> {
  return new Map(
    nodes.flatMap((node) => {
      const size = storageSizeOf(node);
      return size === undefined ? [] : [[node.metadata.name, size] as const];
    }),
  );
}

function defineVolumes({ client, informer }: ControllerParts): ControllerDefinition<LocalVolumeWorld> {
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  const nodeExists = createNodeCheck(nodes, client);
  const snapshotted = new LiveUse(client, VOLUME_SNAPSHOT_CONTENTS, snapshottedVolumes);
  indexCopiers(nodes);
  contents.addIndex(UNFINISHED_BY_VOLUME, snapshottedVolumes);
  volumes.addIndex(AWAITED_DATA_NODE, (volume) => asList(awaitedDataNode(volume)));
  volumes.addIndex(AWAITED_COPY_NODE, (volume) => asList(awaitedCopyNode(volume)));
  volumes.addIndex(FILLABLE_ANYWHERE, (volume) => (canFillAnywhere(volume) ? [FILLABLE_ANYWHERE] : []));
  volumes.addIndex(AWAITED_LEFTOVER_NODE, (volume) => asList(awaitedLeftoverNode(volume)));
  const volumesOfNode = ({ metadata: { name } }: Stored<Node>) => [
    ...[AWAITED_DATA_NODE, AWAITED_COPY_NODE, AWAITED_LEFTOVER_NODE]
      .flatMap((index) => volumes.byIndex(index, name))
      .map(objectKey),
    // Any node that can copy can fill these.
    ...volumes.byIndex(FILLABLE_ANYWHERE, FILLABLE_ANYWHERE).map(objectKey),
  ];

  /** Reads live before a volume is deleted: no snapshot of a volume without a claim begins any more. */
  async function isBeingSnapshotted(volume: Stored<PersistentVolume>, options: { signal: AbortSignal }) {
    const { name, resourceVersion } = volume.metadata;
    if (contents.byIndex(UNFINISHED_BY_VOLUME, name).length > 0) return true;
    return isUnneeded(volume) && (await snapshotted.isUsed(name, { resourceVersion }, options));
  }

  return defineController<LocalVolumeWorld>({
    name: 'storage-volumes',
    type: PERSISTENT_VOLUMES,
    concurrency: CONCURRENCY,
    sources: [source(volumes), source(contents, volumeNames), source(nodes, volumesOfNode, { part: canCopy })],
    async observe(key, options) {
      const volume = volumes.get(key);
      if (volume === undefined) return undefined;
      const dataNode = awaitedDataNode(volume);
      const leftover = awaitedLeftoverNode(volume);
      const copyNode = awaitedCopyNode(volume);
      const copyNodeExists = copyNode !== undefined && (await nodeExists(copyNode, options));
      return {
        volume,
        dataNodeExists: dataNode === undefined || (await nodeExists(dataNode, options)),
        leftoverNodeExists: leftover === undefined || (await nodeExists(leftover, options)),
        copyNodeExists,
        isBeingSnapshotted: await isBeingSnapshotted(volume, options),
        ...(canFillAnywhere(volume) && !copyNodeExists ? { copier: firstCopier(nodes) } : {}),
      };
    },
    decide: decideLocalVolume,
    subject: ({ volume }) => volume,
  });
}

/** Returns the volume of a snapshot that is in progress. */
function snapshottedVolumes(content: VolumeSnapshotContent): string[] {
  const { metadata, spec, status } = content;
  const isInProgress = status?.readyToUse !== true && metadata.deletionTimestamp === undefined;
  return spec.driver === LOCAL_DRIVER && isInProgress ? volumeNames(content) : [];
}

/** Returns the name of the source volume: our volumes are named like their handle. */
function volumeNames({ spec }: VolumeSnapshotContent): string[] {
  return asList(spec.source.volumeHandle);
}

function asList(name: string | undefined): string[] {
  return name === undefined ? [] : [name];
}

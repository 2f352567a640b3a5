/**
 * The provisioner `selfsame.io/local`: makes, grows and deletes PersistentVolumes, as an external provisioner of
 * Kubernetes does. It writes objects only; files are made, grown and removed by the node agents, which see the volumes.
 */
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { LOCAL_DRIVER, LOCAL_PROVISIONER } from '#api/names.ts';
import { objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import { type ClaimWorld, decideClaim } from '#controllers/storage/decide-claim.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { consumedBy, consumerNode, indexConsumers } from '#controllers/storage/consumers.ts';
import { canCopy, firstCopier, indexCopiers } from '#controllers/storage/copy-node.ts';
import {
  awaitedCopyNode,
  awaitedHome,
  awaitedLeftover,
  decideVolume,
  isFilledAnywhere,
  type VolumeWorld,
} from '#controllers/storage/decide-volume.ts';
import { volumeNameFor } from '#controllers/storage/local-volume.ts';
import {
  CLAIMS_BY_SOURCE,
  type SnapshotSource,
  snapshotKeysOf,
  sourceSnapshotKeys,
} from '#controllers/storage/snapshot-source.ts';
import { parseSnapshotHandle } from '#api/snapshot-handle.ts';
import {
  NODES,
  type Node,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { type ControllerDefinition, defineController, source, startController } from '#runtime/controller.ts';

const CONCURRENCY = 10;
/** Claims by the name of their class. */
const BY_CLASS = 'storage-class';
/** Claims that have no volume yet, by the word itself. */
const UNBOUND = 'unbound';
/** Volumes that are to go, by the node that has to remove their data. */
const AWAITED_HOME = 'awaited-home';
/** Volumes of which a copy is left behind, by the node that has to remove it. */
const AWAITED_LEFTOVER = 'awaited-leftover';
/** Contents of snapshots that are not complete, by the volume. */
const UNFINISHED_BY_VOLUME = 'unfinished-by-volume';
/** Volumes that are to be filled, by the node that is to do it. */
const AWAITED_COPY_NODE = 'awaited-copy-node';
/** Volumes that are to be filled by any node that can, by the word itself. */
const FILLED_ANYWHERE = 'filled-anywhere';

export const storageController: PlaneController = {
  account: 'storage-controller',
  eventSource: LOCAL_PROVISIONER,
  start(parts) {
    return [startController(claimDefinition(parts), parts), startController(volumeDefinition(parts), parts)];
  },
};

function claimDefinition({ informer, clock }: ControllerParts): ControllerDefinition<ClaimWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const pods = informer(PODS);
  const nodes = informer(NODES);
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  indexConsumers(pods);
  indexCopiers(nodes);
  claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
  claims.addIndex(UNBOUND, ({ spec }) => (spec.volumeName ? [] : [UNBOUND]));
  claims.addIndex(BY_CLASS, ({ spec }) => (spec.storageClassName ? [spec.storageClassName] : []));

  /** Claims that have their volume are through with their source. */
  function madeFrom(snapshotKey: string): string[] {
    const waiting = claims.byIndex(CLAIMS_BY_SOURCE, snapshotKey).filter(({ spec }) => !spec.volumeName);
    return waiting.map(objectKey);
  }

  function sourceOf([snapshotKey]: readonly string[]): SnapshotSource {
    const snapshot = snapshotKey === undefined ? undefined : snapshots.get(snapshotKey);
    const content = snapshot?.status?.boundVolumeSnapshotContentName;
    return { snapshot, content: content === undefined ? undefined : contents.get(content) };
  }

  function homeExists({ content }: SnapshotSource): boolean {
    const place = parseSnapshotHandle(content?.status?.snapshotHandle ?? '');
    return place?.scope !== 'node' || nodes.get(place.node) !== undefined;
  }

  return defineController<ClaimWorld>({
    name: 'storage-claims',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      source(claims),
      source(volumes, claimKeysOfVolume),
      source(classes, ({ metadata }) => claims.byIndex(BY_CLASS, metadata.name).map(objectKey)),
      source(pods, consumedBy),
      source(snapshots, (snapshot) => madeFrom(objectKey(snapshot))),
      source(contents, (content) => snapshotKeysOf(content).flatMap(madeFrom)),
      source(nodes, () => claims.byIndex(UNBOUND, UNBOUND).map(objectKey), { part: canCopy }),
    ],
    observe(key) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const { storageClassName, volumeName } = claim.spec;
      const snapshotSource = sourceOf(volumeName ? [] : sourceSnapshotKeys(claim));
      const selected = claim.metadata.annotations?.[SELECTED_NODE];
      return {
        claim,
        storageClass: storageClassName ? classes.get(storageClassName) : undefined,
        volume: volumes.get(volumeName || volumeNameFor(claim)),
        selectedNodeExists: selected !== undefined && nodes.get(selected) !== undefined,
        consumerNode: consumerNode(pods, key),
        source: snapshotSource,
        sourceNodeExists: homeExists(snapshotSource),
        ...(snapshotSource.content === undefined ? {} : { copier: firstCopier(nodes) }),
        now: timestamp(clock.now()),
      };
    },
    decide: decideClaim,
    subject: ({ claim }) => claim,
  });
}

function volumeDefinition({ informer }: ControllerParts): ControllerDefinition<VolumeWorld> {
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  const contents = informer(VOLUME_SNAPSHOT_CONTENTS);
  indexCopiers(nodes);
  contents.addIndex(UNFINISHED_BY_VOLUME, (content) => (isUnfinished(content) ? volumeNames(content) : []));
  volumes.addIndex(AWAITED_HOME, (volume) => listed(awaitedHome(volume)));
  volumes.addIndex(AWAITED_COPY_NODE, (volume) => listed(awaitedCopyNode(volume)));
  volumes.addIndex(FILLED_ANYWHERE, (volume) => (isFilledAnywhere(volume) ? [FILLED_ANYWHERE] : []));
  volumes.addIndex(AWAITED_LEFTOVER, (volume) => listed(awaitedLeftover(volume)));
  const waitingFor = ({ metadata: { name } }: Stored<Node>) => [
    ...[AWAITED_HOME, AWAITED_COPY_NODE, AWAITED_LEFTOVER]
      .flatMap((index) => volumes.byIndex(index, name))
      .map(objectKey),
    // Any node that can copy may fill them.
    ...volumes.byIndex(FILLED_ANYWHERE, FILLED_ANYWHERE).map(objectKey),
  ];
  return defineController<VolumeWorld>({
    name: 'storage-volumes',
    type: PERSISTENT_VOLUMES,
    concurrency: CONCURRENCY,
    sources: [source(volumes), source(contents, volumeNames), source(nodes, waitingFor, { part: canCopy })],
    observe(key) {
      const volume = volumes.get(key);
      if (volume === undefined) return undefined;
      const home = awaitedHome(volume);
      const leftover = awaitedLeftover(volume);
      const copyNode = awaitedCopyNode(volume);
      const copyNodeExists = copyNode !== undefined && nodes.get(copyNode) !== undefined;
      return {
        volume,
        homeExists: home === undefined || nodes.get(home) !== undefined,
        leftoverNodeExists: leftover === undefined || nodes.get(leftover) !== undefined,
        copyNodeExists,
        isBeingTaken: contents.byIndex(UNFINISHED_BY_VOLUME, key).length > 0,
        ...(isFilledAnywhere(volume) && !copyNodeExists ? { copier: firstCopier(nodes) } : {}),
      };
    },
    decide: decideVolume,
    subject: ({ volume }) => volume,
  });
}

function isUnfinished({ metadata, spec, status }: VolumeSnapshotContent): boolean {
  return spec.driver === LOCAL_DRIVER && status?.readyToUse !== true && metadata.deletionTimestamp === undefined;
}

/** Volumes of ours have the name of their handle. */
function volumeNames({ spec }: VolumeSnapshotContent): string[] {
  return listed(spec.source.volumeHandle);
}

function listed(name: string | undefined): string[] {
  return name === undefined ? [] : [name];
}

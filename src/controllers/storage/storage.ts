/**
 * The provisioner `selfsame.io/local`: makes, grows and deletes PersistentVolumes, as an external provisioner of
 * Kubernetes does. It writes objects only; files are made, grown and removed by the node agents, which see the volumes.
 */
import type { PlaneController } from '#controllers/plane-controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { LOCAL_PROVISIONER } from '#api/names.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { type ClaimWorld, decideClaim } from '#controllers/storage/decide-claim.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import { awaitedHome, decideVolume, type VolumeWorld } from '#controllers/storage/decide-volume.ts';
import { volumeNameFor } from '#controllers/storage/local-volume.ts';
import {
  NODES,
  type Node,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type Pod,
  PODS,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import {
  type ControllerDefinition,
  defineController,
  lookedUp,
  source,
  type Source,
  startController,
} from '#runtime/controller.ts';

const CONCURRENCY = 10;
/** Pods that have a node and have not ended, by the key of each claim that they use. */
const CONSUMERS = 'consumed-claim';
/** Claims by the name of their class. */
const BY_CLASS = 'storage-class';
/** Volumes that are to go, by the node that has to remove their data. */
const AWAITED_HOME = 'awaited-home';

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
  pods.addIndex(CONSUMERS, consumedBy);
  claims.addIndex(BY_CLASS, ({ spec }) => (spec.storageClassName ? [spec.storageClassName] : []));

  return defineController<ClaimWorld>({
    name: 'storage-claims',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      source(claims),
      source(volumes, ({ spec }) => {
        const { namespace, name } = spec.claimRef ?? {};
        return name === undefined ? [] : [keyOf({ namespace, name })];
      }),
      source(classes, ({ metadata }) => claims.byIndex(BY_CLASS, metadata.name).map(objectKey)),
      source(pods, consumedBy),
      lookedUp(nodes),
    ],
    observe(key) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const { storageClassName, volumeName } = claim.spec;
      const [consumer] = pods.byIndex(CONSUMERS, key);
      const selected = claim.metadata.annotations?.[SELECTED_NODE];
      return {
        claim,
        storageClass: storageClassName ? classes.get(storageClassName) : undefined,
        volume: volumes.get(volumeName || volumeNameFor(claim)),
        selectedNodeExists: selected !== undefined && nodes.get(selected) !== undefined,
        consumerNode: consumer?.spec.nodeName,
        now: timestamp(clock.now()),
      };
    },
    decide: decideClaim,
    subject: ({ claim }) => claim,
  });
}

function consumedBy({ metadata: { namespace }, spec, status }: Stored<Pod>): string[] {
  if (!spec.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return [];
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [keyOf({ namespace, name: claim.claimName })],
  );
}

function volumeDefinition({ informer }: ControllerParts): ControllerDefinition<VolumeWorld> {
  const volumes = informer(PERSISTENT_VOLUMES);
  const nodes = informer(NODES);
  volumes.addIndex(AWAITED_HOME, (volume) => {
    const home = awaitedHome(volume);
    return home === undefined ? [] : [home];
  });
  return defineController<VolumeWorld>({
    name: 'storage-volumes',
    type: PERSISTENT_VOLUMES,
    concurrency: CONCURRENCY,
    sources: [source(volumes), goneNodes(nodes, volumes)],
    observe(key) {
      const volume = volumes.get(key);
      if (volume === undefined) return undefined;
      const home = awaitedHome(volume);
      return { volume, homeExists: home === undefined || nodes.get(home) !== undefined };
    },
    decide: decideVolume,
    subject: ({ volume }) => volume,
  });
}

/** Nodes report all the time; only that one is gone makes a difference, and only to volumes that wait for it. */
function goneNodes(nodes: Informer<Node>, volumes: Informer<PersistentVolume>): Source {
  return {
    cache: nodes,
    subscribe: (add) =>
      nodes.onChange((name, { new: next }) => {
        if (next !== undefined) return;
        for (const { metadata } of volumes.byIndex(AWAITED_HOME, name)) add(metadata.name);
      }),
  };
}

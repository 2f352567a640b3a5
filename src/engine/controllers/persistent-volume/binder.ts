/**
 * Binds claims and volumes to each other, like Kubernetes' persistentvolume controller. A volume is bound only in the
 * observed version, so that two claims cannot get the same volume. Provisioners create, expand and delete volumes; they
 * are ordinary clients.
 */
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_NODES } from '#engine/controllers/kinds.ts';
import { BIND_COMPLETED } from '#engine/controllers/persistent-volume/bind.ts';
import {
  type ClaimBindingWorld,
  decideClaimBinding,
} from '#engine/controllers/persistent-volume/decide-claim-binding.ts';
import { decideVolumePhase, type VolumePhaseWorld } from '#engine/controllers/persistent-volume/decide-volume-phase.ts';
import { defaultClassOf, lacksClass } from '#engine/controllers/persistent-volume/storage-class.ts';
import { classNameOf, storageAnnotationOf } from '#kube/storage-class-name.ts';
import { SELECTED_NODE } from '#kube/volume-keys.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type PersistentVolumeClaim,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import {
  type ControllerDefinition,
  defineController,
  source,
  type Source,
  startController,
} from '#runtime/controller.ts';
import { createLiveReader, type LiveReader } from '#runtime/live-reader.ts';

/** Volumes by the key of their claim, or by class if they have none. */
const BY_CLAIM = 'claim-or-class';
/** Claims without a volume, by class. */
const WAITING = 'waiting-by-class';
/** Claims by the volume in their spec. */
const BY_VOLUME = 'volume';
/** Claims without a volume, by the node that was selected for their first consumer. */
const BY_SELECTED_NODE = 'selected-node';
const CONCURRENCY = 10;

export const persistentVolumeBinder: EngineController = {
  account: 'persistent-volume-binder',
  eventSource: 'persistentvolume-controller',
  start(parts) {
    const claims = parts.informer(PERSISTENT_VOLUME_CLAIMS);
    const volumes = parts.informer(PERSISTENT_VOLUMES);
    volumes.addIndex(BY_CLAIM, (volume) => [volumeIndexKey(volume)]);
    claims.addIndex(WAITING, (claim) => (claim.spec.volumeName ? [] : [classNameOf(claim)]));
    claims.addIndex(BY_SELECTED_NODE, selectedNodeOf);
    claims.addIndex(BY_VOLUME, ({ spec }) => (spec.volumeName ? [spec.volumeName] : []));
    return [startController(claimDefinition(parts), parts), startController(volumeDefinition(parts), parts)];
  },
};

function selectedNodeOf(claim: Stored<PersistentVolumeClaim>): string[] {
  const node = storageAnnotationOf(claim, SELECTED_NODE);
  return claim.spec.volumeName || node === undefined ? [] : [node];
}

function volumeIndexKey(volume: Stored<PersistentVolume>): string {
  const { claimRef } = volume.spec;
  if (claimRef === undefined) return classIndexKey(classNameOf(volume));
  return keyOf({ namespace: claimRef.namespace, name: claimRef.name ?? '' });
}

/** Cannot collide with the key of a claim, which never begins with a slash. */
function classIndexKey(name: string): string {
  return `/${name}`;
}

function claimDefinition({ client, informer }: EngineControllerParts): ControllerDefinition<ClaimBindingWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const nodes = informer(ENGINE_NODES);
  const readLive = createLiveReader(client);
  const waitingFor = (className: string): string[] => claims.byIndex(WAITING, className).map(objectKey);

  /** Returns the volume that the claim names. The API is asked before the volume of a bound claim counts as lost. */
  async function findNamedVolume(claim: Stored<PersistentVolumeClaim>, name: string, options: { signal: AbortSignal }) {
    const isBound = storageAnnotationOf(claim, BIND_COMPLETED) !== undefined;
    return volumes.get(name) ?? (isBound ? await readLive(PERSISTENT_VOLUMES, { name }, options) : undefined);
  }

  return defineController<ClaimBindingWorld>({
    name: 'persistent-volume-binder',
    type: PERSISTENT_VOLUME_CLAIMS,
    concurrency: CONCURRENCY,
    sources: [
      source(claims),
      volumeSource(volumes, claims),
      source(classes, ({ metadata }) => [...waitingFor(metadata.name), ...waitingFor('')]),
      source(nodes, ({ metadata }) => claims.byIndex(BY_SELECTED_NODE, metadata.name).map(objectKey), {
        part: ({ metadata }) => metadata.labels,
      }),
    ],
    async observe(key, options) {
      const claim = claims.get(key);
      if (claim === undefined) return undefined;
      const { volumeName } = claim.spec;
      if (volumeName) return { claim, volume: await findNamedVolume(claim, volumeName, options), candidates: [] };
      const className = classNameOf(claim);
      const reserved = volumes.byIndex(BY_CLAIM, key);
      const free = volumes.byIndex(BY_CLAIM, classIndexKey(className));
      const node = storageAnnotationOf(claim, SELECTED_NODE);
      return {
        claim,
        candidates: [...reserved, ...free],
        storageClass: className === '' ? undefined : classes.get(className),
        defaultClass: lacksClass(claim) ? defaultClassOf(classes.list()) : undefined,
        node: node === undefined ? undefined : nodes.get(node),
      };
    },
    decide: decideClaimBinding,
    subject: ({ claim }) => claim,
  });
}

/** A source that enqueues claims: all of the class for an unclaimed volume, otherwise only those that refer to the volume. */
function volumeSource(volumes: Informer<PersistentVolume>, claims: Informer<PersistentVolumeClaim>): Source {
  return {
    cache: volumes,
    subscribe: (add) =>
      volumes.onChange((name, { old, new: next }) => {
        for (const claim of claims.byIndex(BY_VOLUME, name)) add(objectKey(claim));
        for (const volume of [old, next]) if (volume?.spec.claimRef !== undefined) add(volumeIndexKey(volume));
        if (next === undefined || next.spec.claimRef !== undefined || next.status?.phase !== 'Available') return;
        for (const claim of claims.byIndex(WAITING, classNameOf(next))) add(objectKey(claim));
      }),
  };
}

function volumeDefinition({ client, informer, clock }: EngineControllerParts): ControllerDefinition<VolumePhaseWorld> {
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const readLive = createLiveReader(client);
  return defineController<VolumePhaseWorld>({
    name: 'persistent-volume-phases',
    type: PERSISTENT_VOLUMES,
    concurrency: CONCURRENCY,
    sources: [
      source(volumes),
      source(claims, (claim) => volumes.byIndex(BY_CLAIM, objectKey(claim)).map(({ metadata }) => metadata.name)),
    ],
    async observe(key, options) {
      const volume = volumes.get(key);
      if (volume === undefined) return undefined;
      return { volume, claim: await findBoundClaim(volume, claims, readLive, options), now: timestamp(clock.now()) };
    },
    decide: decideVolumePhase,
    subject: ({ volume }) => volume,
  });
}

/** Returns the claim of a volume. The API is asked before a claim counts as deleted, because the cache may be behind. */
async function findBoundClaim(
  { spec, status }: Stored<PersistentVolume>,
  claims: Informer<PersistentVolumeClaim>,
  readLive: LiveReader,
  options: { signal: AbortSignal },
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const { namespace, name = '', uid } = spec.claimRef ?? {};
  if (!uid) return undefined;
  const known = claims.get(keyOf({ namespace, name }));
  if (known?.metadata.uid === uid) return known;
  if (status?.phase === 'Released' || status?.phase === 'Failed') return undefined;
  const live = await readLive(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, options);
  return live?.metadata.uid === uid ? live : undefined;
}

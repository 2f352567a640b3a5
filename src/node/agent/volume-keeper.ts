/**
 * The loop over PersistentVolumes: removes the data of those that are deleted and lie here, and copies that guests left
 * behind when they went to another node; passes growth on to the guests of this node that have them. Guests that start
 * later find their volumes grown.
 */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { LEFTOVER_NODE_ANNOTATION, VOLUME_DATA_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isApiError } from '#kube/api-error.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  PODS,
} from '#kube/core-kinds.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { claimKeysIn, claimOf, disksOf, guestsOf, indexClaims, isAlive, usersOf } from '#node/agent/claim-users.ts';
import {
  decideVolume,
  grownClaimStatus,
  hasGrown,
  hasLeftover,
  isGuestMoving,
  isOnTheMove,
  standsOn,
} from '#node/agent/decide-volume.ts';
import { dropFinalizer } from '#node/agent/drop-finalizer.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/domains/observe-domain.ts';
import { getIfExists } from '#node/domains/start-domain.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { DiskRefused, type Volumes } from '#node/volumes-port.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface VolumeKeeperParts {
  readonly client: Client;
  readonly node: string;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly hypervisor: Hypervisor;
  readonly turns: Turns;
  readonly volumes: Volumes;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface VolumeKeeper {
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Volumes by the key of the claim that they are for. */
const BY_CLAIM = 'volumes-of-claim';
/** A claim is read only because of its volume: growth changes both. */
const READS: DeclaredReads = {
  name: 'volume-keeper',
  followed: [PERSISTENT_VOLUMES, PODS, VIRTUAL_MACHINE_INSTANCES, PERSISTENT_VOLUME_CLAIMS],
  rechecks: [],
};
const CONCURRENCY = 2;
const STARTING_MS = 5000;
const LEFTOVER_IN_USE_MS = 2000;
const BACKOFF = { firstMs: 500, maxMs: 60_000 };

/** To be called when the informers have synced. */
export function startVolumeKeeper(parts: VolumeKeeperParts): VolumeKeeper {
  const { persistentVolumes, pods, vmis, clock, log, signal } = parts;
  indexClaims(pods, vmis);
  persistentVolumes.addIndex(BY_CLAIM, (volume) => [claimKeyOf(volume)]);
  const rules = new ReadRules(READS);
  const queue = new WorkQueue({
    clock,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    work: (name) => rules.run(() => keep(name, parts)),
    onError: (name, error, { delayMs }) => {
      if (!signal.aborted) log.error({ err: error, volume: name, delayMs }, 'Cannot tend a volume; trying again');
    },
  });
  const wakeVolumesOf = (claims: readonly string[]) => {
    for (const claim of claims)
      for (const { metadata } of persistentVolumes.byIndex(BY_CLAIM, claim)) queue.add(metadata.name);
  };
  const leave = [
    persistentVolumes.onChange((key) => queue.add(key)),
    // A volume may have grown before its user was seen here. Users report often: only a claim that is new to them counts.
    pods.onChange((_, { old, new: next }) => wakeVolumesOf(newClaims(old, next))),
    vmis.onChange((_, { old, new: next }) => wakeVolumesOf(newClaims(old, next))),
  ];
  return {
    idle: () => queue.idle(),
    async stop() {
      for (const end of leave) end();
      await queue.shutdown();
    },
  };
}

/** Returns the keys of the claims that the pod or instance names now and did not name before. */
function newClaims(old: Stored<Pod | VirtualMachineInstance> | undefined, next: typeof old): string[] {
  const before = new Set(old === undefined ? [] : claimKeysIn(old));
  return next === undefined ? [] : claimKeysIn(next).filter((key) => !before.has(key));
}

function claimKeyOf(volume: PersistentVolume): string {
  const { namespace, name } = claimOf(volume);
  return `${namespace}/${name}`;
}

async function keep(name: string, parts: VolumeKeeperParts): Promise<WorkResult> {
  const { persistentVolumes, volumes, node } = parts;
  const volume = persistentVolumes.get(name);
  if (volume === undefined) return {};
  for (const action of decideVolume(volume, node)) {
    if (action.do === 'removeLeftover') return await removeLeftover(name, parts);
    if (action.do === 'removeData') await volumes.removeData(volume);
    // Of a volume that all nodes reach, each tries; the first one wins.
    else await dropFinalizer(PERSISTENT_VOLUMES, volume, VOLUME_DATA_FINALIZER, parts);
  }
  return volume.metadata.deletionTimestamp === undefined ? await growGuests(volume, parts) : {};
}

async function removeLeftover(name: string, parts: VolumeKeeperParts): Promise<WorkResult> {
  const { client, node, hypervisor, volumes, signal } = parts;
  // A cache may be late: by now, the next guest may be on its way here with that volume.
  const volume = await getIfExists(client, PERSISTENT_VOLUMES, { name }, signal);
  if (volume === undefined || !hasLeftover(volume, node)) return {};
  if (isOpen(volume, hypervisor)) return { afterMs: LEFTOVER_IN_USE_MS };
  try {
    await volumes.removeLeftover(volume);
  } catch (error) {
    if (error instanceof DiskRefused) return { afterMs: LEFTOVER_IN_USE_MS };
    throw error;
  }
  await dropLeftoverNote(volume, parts);
  return {};
}

/** All guests are looked at: the one that left it is no longer known to be of this node. */
function isOpen(volume: PersistentVolume, hypervisor: Hypervisor): boolean {
  return hypervisor.list().some(({ id, current }) => {
    const definition = current.state === 'ended' ? undefined : hypervisor.inspect(id)?.definition;
    return definition !== undefined && standsOn(definition, volume);
  });
}

/** Fine where somebody was first: whoever changed it made news of it, which comes to us, too. */
async function dropLeftoverNote(
  { metadata: { name, uid } }: Stored<PersistentVolume>,
  { client, node, signal }: VolumeKeeperParts,
): Promise<void> {
  const path = formatPointer(['metadata', 'annotations', LEFTOVER_NODE_ANNOTATION]);
  const body = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: node },
    { op: 'remove', path },
  ];
  try {
    await client.patch(PERSISTENT_VOLUMES, { name }, { type: 'json', body }, { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Invalid') && !isApiError(error, 'Conflict')) throw error;
  }
}

async function growGuests(volume: Stored<PersistentVolume>, parts: VolumeKeeperParts): Promise<WorkResult> {
  const { client, pods, vmis, hypervisor, turns, volumes, signal } = parts;
  const { namespace, name } = claimOf(volume);
  const users = usersOf({ namespace, name }, pods);
  const plugged = guestsOf({ namespace, name }, parts).map(({ metadata }) => metadata.uid);
  if (users.length === 0 && plugged.length === 0) return {};
  const claim = await getIfExists(client, PERSISTENT_VOLUME_CLAIMS, { namespace, name }, signal);
  if (claim === undefined || claim.spec.volumeName !== volume.metadata.name || !hasGrown(volume, claim)) return {};
  const running = [...new Set([...users.flatMap(instanceUids), ...plugged])].filter((id) => isAlive(hypervisor, id));
  // One that is still to start finds its volume grown; the claim waits to be told all the same.
  if (running.length === 0) return { afterMs: STARTING_MS };
  // On both sides a disk is as large as it was when its guest began to move.
  const isMoving = running.some((id) => isGuestMoving(hypervisor.get(id), vmis.byIndex(INSTANCES_BY_UID, id)[0]));
  if (isMoving || isOnTheMove(volume)) return { afterMs: STARTING_MS };
  const bytes = await volumes.grow(volume);
  for (const id of running) {
    for (const disk of disksOf(id, { namespace, name }, vmis)) {
      await turns.take(id, async () => {
        // One that is still to be plugged in finds its volume grown.
        const devices = hypervisor.inspect(id)?.definition.devices ?? [];
        const isThere = isAlive(hypervisor, id) && devices.some((device) => device.id === disk);
        if (isThere) await hypervisor.resizeDisk(id, disk, bytes);
      });
    }
  }
  await tellClaim(volume, claim, parts);
  return {};
}

async function tellClaim(
  volume: Stored<PersistentVolume>,
  claim: Stored<PersistentVolumeClaim>,
  { client, signal }: VolumeKeeperParts,
): Promise<void> {
  const { name, namespace } = claim.metadata;
  const { capacity, conditions } = grownClaimStatus(volume, claim);
  const body = { metadata: { uid: claim.metadata.uid }, status: { capacity, conditions } };
  await client.patch(
    PERSISTENT_VOLUME_CLAIMS,
    { name, namespace },
    { type: 'merge', body },
    { subresource: 'status', signal },
  );
}

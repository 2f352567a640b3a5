/**
 * The control loop over PersistentVolumes: removes the data of deleted volumes on this node and leftovers of migrated
 * guests, and grows the disks of running guests. Guests that start later get the grown volume.
 */
import { LEFTOVER_NODE_ANNOTATION, VOLUME_DATA_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  PODS,
} from '#kube/core-kinds.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import type { Stored } from '#kube/meta.ts';
import {
  claimKeysIn,
  claimOf,
  disksOnClaim,
  guestsUsing,
  indexClaims,
  hasLiveGuest,
  podsUsing,
} from '#node/storage/claim-users.ts';
import {
  decideNodeVolume,
  grownClaimStatus,
  hasGrown,
  hasLeftover,
  isGuestMoving,
  isVolumeMoving,
  usesVolume,
} from '#node/storage/decide-node-volume.ts';
import { patchIfUnchanged, removeNodeFinalizer } from '#node/storage/guarded-patch.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/guests/guest-objects.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { DiskRefusedError } from '#node/volumes/volumes-port.ts';
import type { StorageLoop, StorageParts } from '#node/storage/storage-parts.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

/** Index of volumes by the key of their claim. */
const BY_CLAIM = 'volumes-of-claim';
/** Claims are not watched: their growth changes the volume, too. */
const READS: DeclaredReads = {
  // The name of earlier versions: metrics and managedFields contain it.
  name: 'volume-keeper',
  followed: [PERSISTENT_VOLUMES, PODS, VIRTUAL_MACHINE_INSTANCES, PERSISTENT_VOLUME_CLAIMS],
  rechecks: [],
};
const CONCURRENCY = 2;
const GROWTH_RECHECK_MS = 5000;
const LEFTOVER_RECHECK_MS = 2000;
const BACKOFF = { firstMs: 500, maxMs: 60_000 };

/** Starts the loop. Call it when the informers have synced. */
export function startVolumeController(parts: StorageParts): StorageLoop {
  const { persistentVolumes, pods, vmis, clock, log, signal } = parts;
  indexClaims(pods, vmis);
  persistentVolumes.addIndex(BY_CLAIM, (volume) => [claimKeyOf(volume)]);
  const rules = new ReadRules(READS);
  const queue = new WorkQueue({
    clock,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    work: (name) => rules.run(() => reconcile(name, parts)),
    onError: (name, error, { delayMs }) => {
      if (!signal.aborted)
        log.error({ err: error, volume: name, delayMs }, 'Cannot reconcile a volume; it will be tried again');
    },
  });
  const queueVolumesOf = (claims: readonly string[]) => {
    for (const claim of claims)
      for (const { metadata } of persistentVolumes.byIndex(BY_CLAIM, claim)) queue.add(metadata.name);
  };
  const unsubscribes = [
    persistentVolumes.onChange((key) => queue.add(key)),
    // A volume may have grown before its user appeared in the cache. Only new claims count, because users change often.
    pods.onChange((_, { old, new: next }) => queueVolumesOf(newClaims(old, next))),
    vmis.onChange((_, { old, new: next }) => queueVolumesOf(newClaims(old, next))),
  ];
  return {
    idle: () => queue.idle(),
    async stop() {
      for (const unsubscribe of unsubscribes) unsubscribe();
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

async function reconcile(name: string, parts: StorageParts): Promise<WorkResult> {
  const { client, persistentVolumes, volumes, node, signal } = parts;
  const cached = persistentVolumes.get(name);
  if (cached === undefined) return {};
  // Removed data cannot be brought back, so the volume is read from the API before: its policy may be Retain by now.
  const removesData = decideNodeVolume(cached, node).some((action) => action.do === 'removeData');
  const volume = removesData ? await getIfExists(client, PERSISTENT_VOLUMES, { name }, { signal }) : cached;
  if (volume === undefined) return {};
  for (const action of decideNodeVolume(volume, node)) {
    if (action.do === 'removeLeftover') return await removeLeftover(name, parts);
    if (action.do === 'removeData') await volumes.removeData(volume);
    // For a shared volume every node tries; the first one succeeds.
    else await removeNodeFinalizer(PERSISTENT_VOLUMES, volume, VOLUME_DATA_FINALIZER, parts);
  }
  return volume.metadata.deletionTimestamp === undefined ? await growGuests(volume, parts) : {};
}

async function removeLeftover(name: string, parts: StorageParts): Promise<WorkResult> {
  const { client, node, hypervisor, volumes, signal } = parts;
  // Read from the API, because the cache may be outdated and a guest may be returning to this node with the volume.
  const volume = await getIfExists(client, PERSISTENT_VOLUMES, { name }, { signal });
  if (volume === undefined || !hasLeftover(volume, node)) return {};
  if (isVolumeOpen(volume, hypervisor)) return { afterMs: LEFTOVER_RECHECK_MS };
  try {
    await volumes.removeLeftover(volume);
  } catch (error) {
    if (error instanceof DiskRefusedError) return { afterMs: LEFTOVER_RECHECK_MS };
    throw error;
  }
  const path = formatPointer(['metadata', 'annotations', LEFTOVER_NODE_ANNOTATION]);
  const removal = [
    { op: 'test', path, value: node },
    { op: 'remove', path },
  ];
  await patchIfUnchanged(PERSISTENT_VOLUMES, volume, removal, parts);
  return {};
}

/** Reports whether any guest uses the volume. Checks all of them, because the instance is not on this node anymore. */
function isVolumeOpen(volume: PersistentVolume, hypervisor: Hypervisor): boolean {
  return hypervisor.list().some(({ id, current }) => {
    const definition = current.state === 'ended' ? undefined : hypervisor.inspect(id)?.definition;
    return definition !== undefined && usesVolume(definition, volume);
  });
}

async function growGuests(volume: Stored<PersistentVolume>, parts: StorageParts): Promise<WorkResult> {
  const { client, pods, vmis, hypervisor, locks, volumes, signal } = parts;
  const { namespace, name } = claimOf(volume);
  const users = podsUsing({ namespace, name }, pods);
  const plugged = guestsUsing({ namespace, name }, parts).map(({ metadata }) => metadata.uid);
  if (users.length === 0 && plugged.length === 0) return {};
  const claim = await getIfExists(client, PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { signal });
  if (claim === undefined || claim.spec.volumeName !== volume.metadata.name || !hasGrown(volume, claim)) return {};
  const running = [...new Set([...users.flatMap(instanceUids), ...plugged])].filter((id) =>
    hasLiveGuest(hypervisor, id),
  );
  // A guest that starts later gets the grown volume, and then the claim is updated.
  if (running.length === 0) return { afterMs: GROWTH_RECHECK_MS };
  // During a migration the disk must have the same size on both nodes.
  const isMoving = running.some((id) => isGuestMoving(hypervisor.get(id), vmis.byIndex(INSTANCES_BY_UID, id)[0]));
  if (isMoving || isVolumeMoving(volume)) return { afterMs: GROWTH_RECHECK_MS };
  const bytes = await volumes.grow(volume);
  for (const id of running) {
    for (const disk of disksOnClaim(id, { namespace, name }, vmis)) {
      await locks.run(id, async () => {
        // A disk that is plugged in later has the new size.
        const devices = hypervisor.inspect(id)?.definition.devices ?? [];
        const isPlugged = hasLiveGuest(hypervisor, id) && devices.some((device) => device.id === disk);
        if (isPlugged) await hypervisor.resizeDisk(id, disk, bytes);
      });
    }
  }
  await reportGrowth(volume, claim, parts);
  return {};
}

async function reportGrowth(
  volume: Stored<PersistentVolume>,
  claim: Stored<PersistentVolumeClaim>,
  { client, signal }: StorageParts,
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

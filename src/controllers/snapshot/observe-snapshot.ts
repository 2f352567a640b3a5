/**
 * Observes one VirtualMachineSnapshot. While it is in progress, the VM, its instance and its record are read live, so
 * that the content has their latest versions. The VM is held and cannot be started after it was read.
 */
import { findStateClaim, stateOwnerOf } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { keyOf } from '#client/object-key.ts';
import {
  CLAIMS_BY_STATE,
  stateIndexKey,
  stateIndexKeysOf,
} from '#controllers/shared/persistent-state/claims-by-state.ts';
import {
  contentNameOf,
  isSnapshotInProgress,
  type HeldVm,
  type SnapshotWorld,
  type StateClaim,
  type SourceVolume,
} from '#controllers/snapshot/snapshot-world.ts';
import { createRestoreCheck } from '#controllers/snapshot/restore-check.ts';
import { snapshotClassFor } from '#controllers/snapshot/source-volumes.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CLASSES } from '#kube/volume-snapshot-kinds.ts';
import type { ControllerDefinition } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

/** The dependencies of an observer. */
export type ObserverParts = Pick<ControllerParts, 'client' | 'informer' | 'clock'>;

type Observe = ControllerDefinition<SnapshotWorld>['observe'];

export function createSnapshotObserver({ client, informer, clock }: ObserverParts): Observe {
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const persistentVolumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(VOLUME_SNAPSHOT_CLASSES);
  claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
  const readLive = createLiveReader(client);
  const hasRestore = createRestoreCheck(restores, client);

  async function findContent(
    snapshot: Stored<VirtualMachineSnapshot>,
    options: { signal: AbortSignal },
  ): Promise<Stored<VirtualMachineSnapshotContent> | undefined> {
    const name = { namespace: snapshot.metadata.namespace, name: contentNameOf(snapshot) };
    const cached = contents.get(keyOf(name));
    // For a failed snapshot the cache is enough: a content that appears there later triggers another reconcile.
    const cacheSuffices = snapshot.status?.phase === 'Failed' && !isDeleting(snapshot);
    return cached !== undefined || cacheSuffices ? cached : readLive(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, name, options);
  }

  async function observeHeldVm(vm: Stored<VirtualMachine>, options: { signal: AbortSignal }): Promise<HeldVm> {
    const { namespace, name } = vm.metadata;
    const [vmi, identity] = await Promise.all([
      readLive(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, options),
      readLive(VIRTUAL_MACHINE_IDENTITIES, { namespace, name }, options),
    ]);
    return { vm, vmi, identity, volumes: volumesOf(vm), state: stateOf(vm) };
  }

  function stateOf(vm: Stored<VirtualMachine>): StateClaim | undefined {
    const candidates = claims.byIndex(CLAIMS_BY_STATE, stateIndexKey(vm.metadata));
    const claim = findStateClaim(candidates, stateOwnerOf(vm));
    return claim && { claim, ...observeVolume(claim) };
  }

  function observeVolume(
    claim: PersistentVolumeClaim | undefined,
  ): Pick<SourceVolume, 'persistentVolume' | 'snapshotClass'> {
    const persistentVolume = claim?.spec.volumeName ? persistentVolumes.get(claim.spec.volumeName) : undefined;
    return { persistentVolume, snapshotClass: snapshotClassFor(persistentVolume, classes.list()) };
  }

  function volumesOf({ metadata: { namespace }, spec }: Stored<VirtualMachine>): SourceVolume[] {
    return (spec.template.spec?.volumes ?? []).map((volume): SourceVolume => {
      const name = volume.persistentVolumeClaim?.claimName;
      const claim = name === undefined ? undefined : claims.get(keyOf({ namespace, name }));
      return { volume, claim, ...observeVolume(claim) };
    });
  }

  return async (key, options) => {
    const snapshot = snapshots.get(key);
    if (snapshot === undefined) return undefined;
    const content = await findContent(snapshot, options);
    const known = { snapshot, content, hasRestore: await hasRestore(key, snapshot, options), now: clock.now() };
    if (!isSnapshotInProgress(snapshot)) return known;
    const { namespace, name } = snapshot.metadata;
    const vm = await readLive(VIRTUAL_MACHINES, { namespace, name: snapshot.spec.source.name }, options);
    const canCreateContent = content === undefined && vm?.status?.snapshotInProgress === name;
    return { ...known, vm, ...(canCreateContent ? { held: await observeHeldVm(vm, options) } : {}) };
  };
}

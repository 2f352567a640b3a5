/** Observes the world of a restore: from caches, except for the target and its instance, which are read live. */
import { firmwareUuidOf } from '#api/identity/firmware-uuid-index.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { findClaimVm } from '#api/storage/claim-vms.ts';
import { findStateClaim, replacedBy, stateOwnerOf } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import {
  isRestoreFinished,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineSnapshotContent,
} from '#api/virtual-machine-snapshot-content/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import {
  claimKeysOfInstance,
  claimKeysOfVolume,
  indexVmsByClaim,
  listVmsOfClaim,
} from '#controllers/shared/indexes/claim-keys.ts';
import {
  CLAIMS_BY_STATE,
  stateIndexKey,
  stateIndexKeysOf,
} from '#controllers/shared/persistent-state/claims-by-state.ts';
import { planRestores } from '#controllers/restore/build-claim.ts';
import { snapshotUuidOf } from '#controllers/restore/build-restored-vm.ts';
import type { RestoreWorld, RestoredVolume } from '#controllers/restore/restore-world.ts';
import { stateClaimNameFor } from '#controllers/restore/restored-state.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type ResourceType, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

/** Index of instances by the keys of their claims, which may differ from those in the templates of their VMs. */
const INSTANCES_BY_CLAIM = 'claim';
/** Index of claims by the uid of the object that replaces them. */
const CLAIMS_BY_REPLACEMENT = 'replaced-by';
/** Index of VMs by the uuid that their guests see, also if it is not in the spec yet. */
const VMS_BY_EFFECTIVE_UUID = 'effective-firmware-uuid';
/** Index of volumes by the key of their claim. */
const VOLUMES_BY_CLAIM = 'claim-ref';

type StateClaims = Pick<RestoreWorld, 'currentState' | 'replacedStates' | 'diskUserOf'>;
type Observe = (key: string, options: { signal: AbortSignal }) => Promise<RestoreWorld | undefined>;

export function createRestoreObserver({ client, informer, clock }: ControllerParts): Observe {
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const snapshots = informer(VIRTUAL_MACHINE_SNAPSHOTS);
  const contents = informer(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const vms = informer(VIRTUAL_MACHINES);
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const records = informer(VIRTUAL_MACHINE_IDENTITIES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const volumeSnapshots = informer(VOLUME_SNAPSHOTS);
  indexVmsByClaim(vms);
  vmis.addIndex(INSTANCES_BY_CLAIM, claimKeysOfInstance);
  vms.addIndex(VMS_BY_EFFECTIVE_UUID, effectiveUuidsOf);
  volumes.addIndex(VOLUMES_BY_CLAIM, claimKeysOfVolume);
  claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
  claims.addIndex(CLAIMS_BY_REPLACEMENT, (claim) => [replacedBy(claim) ?? ''].filter(Boolean));
  const readLive = createLiveReader(client);

  function observeVolumes(
    restore: Stored<VirtualMachineRestore>,
    content?: VirtualMachineSnapshotContent,
  ): RestoredVolume[] {
    const { namespace } = restore.metadata;
    // The content decides, because only the snapshot controller can write it; it may be gone once the target is written.
    const planned = content === undefined ? (restore.status?.restores ?? []) : planRestores(restore, content);
    const backups = new Map(content?.spec.volumeBackups?.map((backup) => [backup.volumeName, backup]));
    return planned.map(({ volumeName, persistentVolumeClaim: claimName, volumeSnapshotName: snapshotName }) => {
      const claimKey = keyOf({ namespace, name: claimName });
      const claim = claims.get(claimKey);
      const className = claim?.spec.storageClassName;
      return {
        volumeName,
        claimName,
        snapshotName,
        backup: backups.get(volumeName),
        claim,
        volume: volumes
          .byIndex(VOLUMES_BY_CLAIM, claimKey)
          .find(({ spec }) => spec.claimRef?.uid === claim?.metadata.uid),
        storageClass: className ? classes.get(className) : undefined,
        snapshot: volumeSnapshots.get(keyOf({ namespace, name: snapshotName })),
        users: usersOf(claimKey, restore.spec.target.name),
      };
    });
  }

  function usersOf(claimKey: string, target: string): string[] {
    const others = (type: ResourceType, users: readonly Stored[]) =>
      users.flatMap(({ metadata: { name } }) => (name === target ? [] : [`${type.kind} ${name}`])).sort();
    return [
      ...others(VIRTUAL_MACHINES, listVmsOfClaim(vms, claimKey)),
      ...others(VIRTUAL_MACHINE_INSTANCES, vmis.byIndex(INSTANCES_BY_CLAIM, claimKey)),
    ];
  }

  /** Returns the claims of the target's current and replaced state. `vm`: the target, if it exists. */
  function observeState(restore: Stored<VirtualMachineRestore>, vm: Stored<VirtualMachine> | undefined): StateClaims {
    if (vm === undefined) return {};
    const { namespace } = restore.metadata;
    const own = claims.get(keyOf({ namespace, name: stateClaimNameFor(restore) }));
    const isHandedOver = own !== undefined && controllerUid(own) === vm.metadata.uid;
    const diskUserOf = (name: string) =>
      findClaimVm(listVmsOfClaim(vms, keyOf({ namespace, name })), name, vm.metadata)?.metadata.name;
    const candidates = claims.byIndex(CLAIMS_BY_STATE, stateIndexKey(vm.metadata));
    return {
      currentState: findStateClaim(candidates, { ...stateOwnerOf(vm), diskUserOf }),
      replacedStates: isHandedOver
        ? claims
            .byIndex(CLAIMS_BY_REPLACEMENT, own.metadata.uid)
            .filter(({ metadata }) => metadata.namespace === namespace)
        : [],
      diskUserOf,
    };
  }

  /** Returns the first VM by name that has the uuid of the snapshot, so that the message is the same each time. */
  function findUuidHolder(content: VirtualMachineSnapshotContent, targetKey: string): string | undefined {
    const holders = vms.byIndex(VMS_BY_EFFECTIVE_UUID, snapshotUuidOf(content.spec).uuid.toLowerCase());
    return holders
      .map(objectKey)
      .filter((key) => key !== targetKey)
      .sort()[0];
  }

  return async (key, options) => {
    const restore = restores.get(key);
    if (restore === undefined) return undefined;
    const { namespace } = restore.metadata;
    const target = { namespace, name: restore.spec.target.name };
    const snapshot = snapshots.get(keyOf({ namespace, name: restore.spec.virtualMachineSnapshotName }));
    const contentName = snapshot?.status?.virtualMachineSnapshotContentName;
    const named = contentName ? contents.get(keyOf({ namespace, name: contentName })) : undefined;
    // A content of another snapshot is not used.
    const isOwn = (named?.spec.virtualMachineSnapshotName ?? snapshot?.metadata.name) === snapshot?.metadata.name;
    const content = isOwn ? named : undefined;
    const finished = isRestoreFinished(restore);
    // The VM is read first: the VM controller creates no instance of a VM that it holds for this restore.
    const vm = finished ? undefined : await readLive(VIRTUAL_MACHINES, target, options);
    const vmi = vm === undefined ? undefined : await readLive(VIRTUAL_MACHINE_INSTANCES, target, options);
    return {
      restore,
      snapshot,
      content,
      vm,
      vmi,
      record: records.get(keyOf(target)),
      volumes: observeVolumes(restore, content),
      ...observeState(restore, vm),
      uuidHolder: content === undefined ? undefined : findUuidHolder(content, keyOf(target)),
      now: clock.now(),
    };
  };
}

/** Returns the uuid of a VM. One that was stored without a uuid will get the legacy uuid, which therefore counts. */
function effectiveUuidsOf(vm: Stored<VirtualMachine>): string[] {
  return isDeleting(vm) ? [] : [firmwareUuidOf(vm) ?? legacyUuid(vm.metadata.name)];
}

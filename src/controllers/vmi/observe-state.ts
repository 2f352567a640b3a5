/**
 * Observes the claim with the persistent state of an instance: the one that its pod names; before there is a pod, the
 * claim of its VM. If the VM has none, selects the storage for a new one, unless a claim that is marked as its state
 * has another owner.
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import { findStateBlocker } from '#api/storage/claim-vms.ts';
import {
  findStateClaim,
  needsState,
  reportedStateClaim,
  stateClaimIn,
  stateOwnerOf,
  type StateOwner,
} from '#api/storage/persistent-state.ts';
import { describeConflicts, findStateConflicts } from '#api/storage/state-conflict.ts';
import { STORAGE_PROFILES } from '#api/storage/storage-profile.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { templateSpec, VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import {
  allClaimKeysOfVm,
  claimKeysOfVolume,
  indexVmsByClaim,
  listVmsOfClaim,
} from '#controllers/shared/indexes/claim-keys.ts';
import {
  CLAIMS_BY_STATE,
  stateIndexKey,
  stateIndexKeysOf,
} from '#controllers/shared/persistent-state/claims-by-state.ts';
import { createClaimLister } from '#controllers/shared/persistent-state/live-claims.ts';
import { selectStorage } from '#controllers/shared/persistent-state/select-storage.ts';
import type { VmiStateView } from '#controllers/vmi/vmi-world.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolumeClaim,
  type Pod,
  STORAGE_CLASSES,
} from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { source, type Source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import type { Recheck } from '#runtime/decision-reads.ts';

type Vmi = Stored<VirtualMachineInstance>;
type Claim = Stored<PersistentVolumeClaim>;

/** The name of an index: instances with persistent state, by the stateIndexKey of their VM. */
const BY_STATE = 'vmi-of-state';
/** The name of an index: instances with persistent state that have no pod yet. */
const PENDING = 'vmi-waiting-for-state';
const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

/** Storage profiles are read only while an instance waits for a state claim. */
const PROFILE_RECHECK: Recheck = {
  type: STORAGE_PROFILES,
  everyMs: 10_000,
  because: 'an informer of a kind that the cluster may not serve would never sync',
};

interface StateObserver {
  /** Sources whose changes require another observation. */
  readonly sources: readonly Source[];
  /** Kinds that are read from the server and have no source. */
  readonly rechecks: readonly Recheck[];
  /** Resolves to undefined for an instance without persistent state, or whose claim is gone. */
  observe(vmi: Vmi, pod: Stored<Pod> | undefined, options: { signal: AbortSignal }): Promise<VmiStateView | undefined>;
}

export function createStateObserver({ client, informer }: Pick<ControllerParts, 'client' | 'informer'>): StateObserver {
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const vms = informer(VIRTUAL_MACHINES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const kubevirts = informer(KUBEVIRTS);
  vmis.addIndex(BY_STATE, (vmi) => (needsState(vmi.spec) ? [stateKeyOfVmi(vmi)] : []));
  vmis.addIndex(PENDING, (vmi) => (needsState(vmi.spec) && isPending(vmi) ? [PENDING] : []));
  claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
  indexVmsByClaim(vms);
  const listClaims = createClaimLister(client);

  const usersOf = (claim: PersistentVolumeClaim) =>
    stateIndexKeysOf(claim).flatMap((key) => vmis.byIndex(BY_STATE, key).map(objectKey));
  /** Returns the instance of the VM, which has its name, and those that could have one of its disks as their state. */
  const usersOfVm = (vm: Stored<VirtualMachine>) => [
    ...(needsState(templateSpec(vm)) ? [objectKey(vm)] : []),
    ...allClaimKeysOfVm(vm)
      .flatMap((key) => claims.get(key) ?? [])
      .flatMap(usersOf),
  ];

  function ownerOf(vmi: Vmi): StateOwner {
    const { namespace } = vmi.metadata;
    const { vmName: name, ownerUid: uid } = stateOwnerOf(vmi);
    const diskUserOf = (claim: string) =>
      findStateBlocker(listVmsOfClaim(vms, keyOf({ namespace, name: claim })), claim, { uid })?.metadata.name;
    return { ...stateOwnerOf(vmi, vms.get(keyOf({ namespace, name }))), diskUserOf };
  }

  const waiting = () => vmis.byIndex(PENDING, PENDING).map(objectKey);

  function viewOf(claim: Claim): VmiStateView {
    const { volumeName, storageClassName = '' } = claim.spec;
    const waitsForConsumer = classes.get(storageClassName)?.volumeBindingMode === 'WaitForFirstConsumer';
    return { kind: 'exists', claim, waitsForConsumer, volume: volumeName ? volumes.get(volumeName) : undefined };
  }

  /**
   * Reads all claims of the namespace from the server: a claim that the cache does not show yet would be missed, and
   * the guest would start with empty state. A selector cannot find annotations, so all claims are listed.
   */
  async function findLive(vmi: Vmi, options: { signal: AbortSignal }): Promise<VmiStateView> {
    const { namespace } = vmi.metadata;
    const owner = ownerOf(vmi);
    const live = await listClaims(namespace ?? '', options);
    const found = findStateClaim(live, owner);
    if (found !== undefined) return viewOf(found);
    const conflicts = findStateConflicts(live, owner);
    if (conflicts.length === 0) return await selectNewStorage(options);
    const subject = { ...owner, namespace, isAlone: owner.ownerUid === vmi.metadata.uid };
    return { kind: 'disputed', problem: describeConflicts(conflicts, subject) };
  }

  /** Reads from the server, because an informer never syncs if the kind is not served; then there are no profiles. */
  const profileOf = (name: string, options: { signal: AbortSignal }) =>
    getIfExists(client, STORAGE_PROFILES, { name }, options);

  async function selectNewStorage(options: { signal: AbortSignal }): Promise<VmiStateView> {
    const configured = configurationOf(kubevirts.get(CONFIGURATION_KEY)).vmStateStorageClass;
    const known = { classes: classes.list(), configured };
    const chosen = selectStorage({ ...known, profiles: [] });
    if ('problem' in chosen) return { kind: 'impossible', ...chosen };
    const profile = await profileOf(chosen.storageClassName, options);
    const storage = selectStorage({ ...known, profiles: profile === undefined ? [] : [profile] });
    return 'problem' in storage ? { kind: 'impossible', ...storage } : { kind: 'wanted', storage };
  }

  return {
    sources: [
      source(claims, usersOf),
      source(volumes, (volume) =>
        claimKeysOfVolume(volume)
          .flatMap((key) => claims.get(key) ?? [])
          .flatMap(usersOf),
      ),
      source(vms, usersOfVm, { part: stateRelations }),
      source(classes, waiting),
      source(kubevirts, waiting),
    ],
    rechecks: [PROFILE_RECHECK],
    async observe(vmi, pod, options) {
      if (!needsState(vmi.spec)) return undefined;
      const { namespace } = vmi.metadata;
      if (pod !== undefined || !isPending(vmi)) {
        const name = pod === undefined ? reportedStateClaim(vmi) : stateClaimIn(pod);
        const claim = name === undefined ? undefined : claims.get(keyOf({ namespace, name }));
        return claim === undefined ? undefined : viewOf(claim);
      }
      const cached = findStateClaim(claims.byIndex(CLAIMS_BY_STATE, stateKeyOfVmi(vmi)), ownerOf(vmi));
      return cached === undefined ? await findLive(vmi, options) : viewOf(cached);
    },
  };
}

function isPending(vmi: Vmi): boolean {
  const { phase = 'Pending' } = vmi.status ?? {};
  return phase === 'Pending' && !isDeleting(vmi);
}

function stateKeyOfVmi(vmi: Vmi): string {
  return stateIndexKey({ namespace: vmi.metadata.namespace, name: stateOwnerOf(vmi).vmName });
}

/** Returns what the state of an instance depends on: the claim in the status of its VM, and the claims of VMs. */
function stateRelations(vm: Stored<VirtualMachine>) {
  return [vm.status?.stateClaim?.uid, isProtected(vm), ...allClaimKeysOfVm(vm)];
}

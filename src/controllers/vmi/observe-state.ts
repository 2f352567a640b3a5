/**
 * Observes the claim that holds the persistent state of an instance: the one that its pod names. Before there is a pod,
 * the one that its VM has; where it has none, the storage of a new one, unless a claim that is marked as its state belongs
 * to somebody else.
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { findState, needsState, stateClaimIn, STATE_VOLUME, stateOwnerOf } from '#api/persistent-state.ts';
import { describeConflicts, findStateConflicts } from '#api/state-conflict.ts';
import { STORAGE_PROFILES, type StorageProfile } from '#api/storage-profile.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { claimKeysOfVolume } from '#controllers/claim-keys.ts';
import { CLAIMS_BY_STATE, stateIndexKey, stateIndexKeysOf } from '#controllers/persistent-state/claims-by-state.ts';
import { liveClaims } from '#controllers/persistent-state/live-claims.ts';
import { selectStorage } from '#controllers/persistent-state/select-storage.ts';
import type { StateView } from '#controllers/vmi/vmi-world.ts';
import { isApiError } from '#kube/api-error.ts';
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

/** Instances that have state, by what stateIndexKey gives for their VM. */
const BY_STATE = 'vmi-of-state';
/** Those of them that have no pod yet. */
const WAITING = 'vmi-waiting-for-state';
const CONFIGURATION_KEY = keyOf({ namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME });

/** Read only while an instance waits for its state to get a claim. */
const PROFILE_RECHECK: Recheck = {
  type: STORAGE_PROFILES,
  everyMs: 10_000,
  because: 'an informer of a kind that the cluster may not serve would never sync',
};

export interface StateObserver {
  /** What makes another look worth it. */
  readonly sources: readonly Source[];
  /** What is read from the server, and has no source. */
  readonly rechecks: readonly Recheck[];
  /** undefined for an instance without such state, or whose claim is gone. */
  of(vmi: Vmi, pod: Stored<Pod> | undefined, options: { signal: AbortSignal }): Promise<StateView | undefined>;
}

export function stateObserver({ client, informer }: Pick<ControllerParts, 'client' | 'informer'>): StateObserver {
  const vmis = informer(VIRTUAL_MACHINE_INSTANCES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informer(PERSISTENT_VOLUMES);
  const classes = informer(STORAGE_CLASSES);
  const kubevirts = informer(KUBEVIRTS);
  vmis.addIndex(BY_STATE, (vmi) => (needsState(vmi.spec) ? [stateKeyOfVmi(vmi)] : []));
  vmis.addIndex(WAITING, (vmi) => (needsState(vmi.spec) && isToStart(vmi) ? [WAITING] : []));
  claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
  const listClaims = liveClaims(client);

  const usersOf = (claim: PersistentVolumeClaim) =>
    stateIndexKeysOf(claim).flatMap((key) => vmis.byIndex(BY_STATE, key).map(objectKey));
  const waiting = () => vmis.byIndex(WAITING, WAITING).map(objectKey);

  function viewOf(claim: Claim): StateView {
    const { volumeName, storageClassName = '' } = claim.spec;
    const waitsForConsumer = classes.get(storageClassName)?.volumeBindingMode === 'WaitForFirstConsumer';
    return { is: 'there', claim, waitsForConsumer, volume: volumeName ? volumes.get(volumeName) : undefined };
  }

  /**
   * Looks at all claims of the namespace as the server has them: what the cache does not show yet would be left behind, and
   * the guest would begin with empty state. No selector finds an annotation.
   */
  async function findLive(vmi: Vmi, options: { signal: AbortSignal }): Promise<StateView> {
    const { namespace } = vmi.metadata;
    const owner = stateOwnerOf(vmi);
    const live = await listClaims(namespace ?? '', options);
    const found = findState(live, owner);
    if (found !== undefined) return viewOf(found);
    const conflicts = findStateConflicts(live, owner);
    if (conflicts.length === 0) return await wishOf(options);
    const subject = { ...owner, namespace, isAlone: owner.ownerUid === vmi.metadata.uid };
    return { is: 'disputed', problem: describeConflicts(conflicts, subject) };
  }

  /** Not from a cache: where the kind is not served, there are none. */
  async function profileOf(
    name: string,
    options: { signal: AbortSignal },
  ): Promise<Stored<StorageProfile> | undefined> {
    try {
      return await client.get(STORAGE_PROFILES, { name }, options);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async function wishOf(options: { signal: AbortSignal }): Promise<StateView> {
    const configured = configurationOf(kubevirts.get(CONFIGURATION_KEY)).vmStateStorageClass;
    const known = { classes: classes.list(), configured };
    const chosen = selectStorage({ ...known, profiles: [] });
    if ('problem' in chosen) return { is: 'impossible', ...chosen };
    const profile = await profileOf(chosen.storageClassName, options);
    const storage = selectStorage({ ...known, profiles: profile === undefined ? [] : [profile] });
    return 'problem' in storage ? { is: 'impossible', ...storage } : { is: 'wanted', storage };
  }

  return {
    sources: [
      source(claims, usersOf),
      source(volumes, (volume) =>
        claimKeysOfVolume(volume)
          .flatMap((key) => claims.get(key) ?? [])
          .flatMap(usersOf),
      ),
      source(classes, waiting),
      source(kubevirts, waiting),
    ],
    rechecks: [PROFILE_RECHECK],
    async of(vmi, pod, options) {
      if (!needsState(vmi.spec)) return undefined;
      const { namespace } = vmi.metadata;
      if (pod !== undefined || !isToStart(vmi)) {
        const name = pod === undefined ? toldClaim(vmi) : stateClaimIn(pod);
        const claim = name === undefined ? undefined : claims.get(keyOf({ namespace, name }));
        return claim === undefined ? undefined : viewOf(claim);
      }
      const cached = findState(claims.byIndex(CLAIMS_BY_STATE, stateKeyOfVmi(vmi)), stateOwnerOf(vmi));
      return cached === undefined ? await findLive(vmi, options) : viewOf(cached);
    },
  };
}

function isToStart(vmi: Vmi): boolean {
  const { phase = 'Pending' } = vmi.status ?? {};
  return phase === 'Pending' && !isDeleting(vmi);
}

function stateKeyOfVmi(vmi: Vmi): string {
  return stateIndexKey({ namespace: vmi.metadata.namespace, name: stateOwnerOf(vmi).vmName });
}

/** As the status told it while there was a pod. */
function toldClaim({ status }: Vmi): string | undefined {
  return status?.volumeStatus?.find(({ name }) => name === STATE_VOLUME)?.persistentVolumeClaimInfo?.claimName;
}

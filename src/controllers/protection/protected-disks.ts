/** Finds the protected VMs of claims and volumes, and the claims and volumes of VMs. Reads only caches. */
import { isUnownedStateOf } from '#api/storage/persistent-state.ts';
import { keyOf, objectKey, parseKey } from '#client/object-key.ts';
import type { Informer } from '#client/informer.ts';
import { CLAIMS_BY_STATE, stateIndexKeysOf } from '#controllers/shared/persistent-state/claims-by-state.ts';
import { vmOwnerKey, type ProtectedVms } from '#controllers/protection/protected-vms.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

/** Index of claims by the owner that controls them (vmOwnerKey). */
const BY_CONTROLLER = 'controller-owner';
/** Index of volumes by the uid of the claim to which they are bound. */
const BY_BOUND_CLAIM = 'bound-claim-uid';

export class ProtectedDisks {
  readonly #vms: ProtectedVms;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;

  constructor(vms: ProtectedVms, claims: Informer<PersistentVolumeClaim>, volumes: Informer<PersistentVolume>) {
    this.#vms = vms;
    this.#claims = claims;
    this.#volumes = volumes;
    claims.addIndex(BY_CONTROLLER, ownerKeysOf);
    claims.addIndex(CLAIMS_BY_STATE, stateIndexKeysOf);
    volumes.addIndex(BY_BOUND_CLAIM, ({ spec }) => (spec.claimRef?.uid ? [spec.claimRef.uid] : []));
  }

  /** Returns the keys of the first protected VMs that would be lost with the claim, sorted. */
  vmsOfClaim(claim: Stored<PersistentVolumeClaim>): readonly string[] {
    const naming = this.#vms.first('claim', objectKey(claim));
    const controlling = ownerKeysOf(claim).flatMap((owner) => this.#vms.first('owner', owner));
    return [...new Set([...naming, ...controlling, ...this.#vmsOfState(claim)])].toSorted();
  }

  vmsOfVolume(volume: PersistentVolume): readonly string[] {
    const claim = this.claimOfVolume(volume);
    return claim === undefined ? [] : this.vmsOfClaim(claim);
  }

  /** Returns a claim only if claim and volume name each other: one side alone may name a foreign object. */
  claimOfVolume({ metadata, spec }: PersistentVolume): Stored<PersistentVolumeClaim> | undefined {
    const { namespace, name = '', uid } = spec.claimRef ?? {};
    const claim = this.#claims.get(keyOf({ namespace, name }));
    const isBound = claim?.metadata.uid === uid && claim?.spec.volumeName === metadata.name;
    return isBound ? claim : undefined;
  }

  /**
   * Finds VMs that use the claim as their state without owning it: a claim from a user or an old version has no owner.
   */
  #vmsOfState(claim: Stored<PersistentVolumeClaim>): readonly string[] {
    return stateIndexKeysOf(claim)
      .flatMap((state) => this.#vms.first('state', state))
      .filter((key) => isUnownedStateOf(claim, parseKey(key).name));
  }

  /** Returns the keys of the claims that may hold that state. */
  withState(state: string): string[] {
    return this.#claims.byIndex(CLAIMS_BY_STATE, state).map(objectKey);
  }

  /** Returns the keys of the claims that the owner controls. */
  controlledBy(owner: string): string[] {
    return this.#claims.byIndex(BY_CONTROLLER, owner).map(objectKey);
  }

  volumesOf({ metadata }: Stored<PersistentVolumeClaim>): string[] {
    return this.#volumes.byIndex(BY_BOUND_CLAIM, metadata.uid).map(objectKey);
  }

  volumesOfKey(claimKey: string): string[] {
    const claim = this.#claims.get(claimKey);
    return claim === undefined ? [] : this.volumesOf(claim);
  }
}

function ownerKeysOf(claim: PersistentVolumeClaim): string[] {
  const uid = controllerUid(claim);
  return uid === undefined ? [] : [vmOwnerKey(claim.metadata.namespace, uid)];
}

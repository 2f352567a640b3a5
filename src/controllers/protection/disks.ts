/** How protected VMs, their claims and the volumes of these find each other. Reads caches only. */
import { isUnownedStateOf } from '#api/persistent-state.ts';
import { keyOf, objectKey, parseKey } from '#client/object-key.ts';
import type { Informer } from '#client/informer.ts';
import { CLAIMS_BY_STATE, stateIndexKeysOf } from '#controllers/persistent-state/claims-by-state.ts';
import { ownerKey, type ProtectedVms } from '#controllers/protection/protected-vms.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

/** Claims by the owner that controls them (ownerKey). */
const BY_CONTROLLER = 'controller-owner';
/** Volumes by the uid of the claim that they are bound to. */
const BY_BOUND_CLAIM = 'bound-claim-uid';

export class Disks {
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

  /** Keys of the first protected VMs whose disk the claim is, in order. */
  vmsOfClaim(claim: Stored<PersistentVolumeClaim>): readonly string[] {
    const naming = this.#vms.first('claim', objectKey(claim));
    const controlling = ownerKeysOf(claim).flatMap((owner) => this.#vms.first('owner', owner));
    return [...new Set([...naming, ...controlling, ...this.#vmsOfState(claim)])].toSorted();
  }

  /** Both sides have to say so: a claim may name the volume of somebody else, and a volume a claim that has another. */
  vmsOfVolume({ metadata, spec }: PersistentVolume): readonly string[] {
    const { namespace, name = '', uid } = spec.claimRef ?? {};
    const claim = this.#claims.get(keyOf({ namespace, name }));
    const isBound = claim?.metadata.uid === uid && claim?.spec.volumeName === metadata.name;
    return claim !== undefined && isBound ? this.vmsOfClaim(claim) : [];
  }

  /** Its state mostly is controlled by the VM. Made otherwise, or long ago, it may have no owner, and is used all the same. */
  #vmsOfState(claim: Stored<PersistentVolumeClaim>): readonly string[] {
    return stateIndexKeysOf(claim)
      .flatMap((state) => this.#vms.first('state', state))
      .filter((key) => isUnownedStateOf(claim, parseKey(key).name));
  }

  /** Keys of the claims that may hold that state. */
  withState(state: string): string[] {
    return this.#claims.byIndex(CLAIMS_BY_STATE, state).map(objectKey);
  }

  /** Keys of the claims that the owner controls. */
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
  return uid === undefined ? [] : [ownerKey(claim.metadata.namespace, uid)];
}

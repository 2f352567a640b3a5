/**
 * Decides what happens to an object that has owners. Pure.
 *
 *   the kind of an owner is not served            unknown: kept, and checked again later
 *   namespaced owner of a cluster-scoped object   invalid: kept, and reported in an Event
 *   a solid owner                                 kept; references to absent and waiting owners are removed
 *   none solid, one waits, object has dependents  deleted in the foreground; a cycle is broken first
 *   otherwise                                     deleted with the policy that its own finalizers request
 */
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';
import { keepOwners, unblockOwners } from '#engine/controllers/garbage-collector/owner-patches.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import type { OwnerReference, Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type DeleteChange, type Plan } from '#runtime/plan.ts';

export type OwnerState =
  /** The owner exists and does not wait for this object to be deleted. */
  | 'solid'
  /** The owner is in foreground deletion and waits for its dependents. */
  | 'waiting'
  /** The API has no object with this name, or one with another uid. */
  | 'absent'
  /** The owner's kind is not served, so its state is unknown. */
  | 'unserved'
  /** The owner's kind is namespaced, but the dependent is cluster-scoped. */
  | 'invalid';

export interface OwnerObservation {
  readonly reference: OwnerReference;
  readonly state: OwnerState;
  /** True if a watch has delivered the owner, so that its deletion will be noticed. */
  readonly isWatched: boolean;
  /** True if an object with this uid exists in another namespace. */
  readonly isInOtherNamespace: boolean;
}

export interface DependentWorld extends CollectedObject {
  /** One observation for each owner reference of the object, in order. */
  readonly owners: readonly OwnerObservation[];
  /** `waiting`: at least one dependent is in foreground deletion. */
  readonly dependents: 'none' | 'some' | 'waiting';
}

interface DependentDecision {
  readonly plan: Plan;
  /** True if the object is to be checked again with increasing delay. */
  readonly retryLater?: boolean;
  /** Invalid references, which are reported in Events. */
  readonly invalidOwners: readonly OwnerReference[];
}

export function decideDependent(world: DependentWorld): DependentDecision {
  const { object, owners } = world;
  const invalidOwners = owners
    .filter(({ state, isInOtherNamespace }) => state === 'invalid' || (state === 'absent' && isInOtherNamespace))
    .map(({ reference }) => reference);
  const hasOwnerIn = (wanted: OwnerState) => owners.some(({ state }) => state === wanted);

  if (owners.length === 0 || object.metadata.deletionTimestamp !== undefined)
    return { plan: EMPTY_PLAN, invalidOwners: [] };
  if (hasOwnerIn('invalid')) return { plan: EMPTY_PLAN, invalidOwners };
  if (hasOwnerIn('unserved')) return { plan: EMPTY_PLAN, retryLater: true, invalidOwners };
  if (hasOwnerIn('solid')) {
    // The deletion of an owner that no watch has delivered yet would go unnoticed.
    const retryLater = owners.some(({ state, isWatched }) => state === 'solid' && !isWatched);
    return { plan: removeStaleReferences(world), retryLater, invalidOwners };
  }
  if (hasOwnerIn('waiting') && world.dependents !== 'none') return { plan: deleteInForeground(world), invalidOwners };
  return {
    plan: { changes: [deleteDependent(world, policyOf(object), 'none of its owners exists')] },
    invalidOwners,
  };
}

function removeStaleReferences(world: DependentWorld): Plan {
  const solid = new Set(world.owners.filter(({ state }) => state === 'solid').map(({ reference }) => reference));
  if (solid.size === world.owners.length) return EMPTY_PLAN;
  const keep = (reference: OwnerReference) => solid.has(reference);
  return { changes: [keepOwners(world, keep, 'some of its owners do not exist or wait for its deletion')] };
}

/** Deletes the object after its dependents. */
function deleteInForeground(world: DependentWorld): Plan {
  const waiting = world.owners.filter(({ state }) => state === 'waiting').map(({ reference }) => reference);
  const blocked = new Set(waiting.filter(({ blockOwnerDeletion }) => blockOwnerDeletion).map(({ uid }) => uid));
  if (world.dependents === 'waiting' && blocked.size > 0) {
    // This may be a cycle: its owners must not wait for the object while it waits for them. The next reconcile deletes it.
    return {
      changes: [unblockOwners(world, (uid) => blocked.has(uid), 'its owners and its dependents wait for each other')],
      requeueAfterMs: 0,
    };
  }
  return { changes: [deleteDependent(world, 'Foreground', 'its owner waits for its deletion')] };
}

type Policy = DeleteChange['propagationPolicy'];

function policyOf({ metadata }: Stored): Policy {
  if (metadata.finalizers?.includes(ORPHAN_FINALIZER)) return 'Orphan';
  if (metadata.finalizers?.includes(FOREGROUND_FINALIZER)) return 'Foreground';
  return 'Background';
}

/** Deletes the object only in the observed version, because it may have got another owner since. */
function deleteDependent({ type, object }: CollectedObject, propagationPolicy: Policy, why: string): DeleteChange {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return { do: 'delete', type, name: { name, namespace }, uid, resourceVersion, propagationPolicy, why };
}

/**
 * What becomes of an object that has owners. Pure.
 *
 *   an owner whose kind is not served          nobody knows: left alone, looked at again later
 *   a namespaced owner of a cluster-wide one   can never be right: left alone, an Event says so
 *   a solid owner                              stays; references to absent and waiting owners go
 *   none solid, one waits, has dependents      deleted in the foreground; a circle is broken first
 *   otherwise                                  deleted as its own finalizers ask for
 */
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';
import { keepOwners, unblockOwners } from '#engine/controllers/garbage-collector/owner-patches.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import type { OwnerReference, Stored } from '#kube/meta.ts';
import { NOTHING, type DeleteChange, type Plan } from '#runtime/plan.ts';

export type OwnerState =
  /** It is there and does not wait for this object to go. */
  | 'solid'
  /** It is in foreground deletion. */
  | 'waiting'
  /** The API has no object of that name, or one with another uid. */
  | 'absent'
  /** The kind is not served: there is no way to know. */
  | 'unserved'
  /** It would be in a namespace, and the dependent is in none. */
  | 'invalid';

export interface OwnerObservation {
  readonly reference: OwnerReference;
  readonly state: OwnerState;
  /** Whether a watch shows it, so that its end will be noticed. */
  readonly isWatched: boolean;
  /** An object of that uid is there, but in another namespace. */
  readonly isInOtherNamespace: boolean;
}

export interface DependentWorld extends CollectedObject {
  /** One for each reference of the object, in order. */
  readonly owners: readonly OwnerObservation[];
  /** Whether it has dependents itself, and whether one of them is in foreground deletion. */
  readonly dependents: 'none' | 'some' | 'waiting';
}

export interface DependentDecision {
  readonly plan: Plan;
  /** Look again after some time, longer each time. */
  readonly retryLater?: boolean;
  /** References that cannot be right; people are told. */
  readonly invalidOwners: readonly OwnerReference[];
}

export function decideDependent(world: DependentWorld): DependentDecision {
  const { object, owners } = world;
  const misplaced = owners
    .filter(({ state, isInOtherNamespace }) => state === 'invalid' || (state === 'absent' && isInOtherNamespace))
    .map(({ reference }) => reference);
  const hasOwnerIn = (wanted: OwnerState) => owners.some(({ state }) => state === wanted);

  if (owners.length === 0 || object.metadata.deletionTimestamp !== undefined)
    return { plan: NOTHING, invalidOwners: [] };
  if (hasOwnerIn('invalid')) return { plan: NOTHING, invalidOwners: misplaced };
  if (hasOwnerIn('unserved')) return { plan: NOTHING, retryLater: true, invalidOwners: misplaced };
  if (hasOwnerIn('solid')) {
    // An owner that no watch has shown yet could go without anybody noticing.
    const unsettled = owners.some(({ state, isWatched }) => state === 'solid' && !isWatched);
    return { plan: removeStaleReferences(world), retryLater: unsettled, invalidOwners: misplaced };
  }
  if (hasOwnerIn('waiting') && world.dependents !== 'none')
    return { plan: deleteInForeground(world), invalidOwners: misplaced };
  return {
    plan: { changes: [deleteDependent(world, policyOf(object), 'all of its owners are gone')] },
    invalidOwners: misplaced,
  };
}

function removeStaleReferences(world: DependentWorld): Plan {
  const solid = new Set(world.owners.filter(({ state }) => state === 'solid').map(({ reference }) => reference));
  if (solid.size === world.owners.length) return NOTHING;
  const keep = (reference: OwnerReference) => solid.has(reference);
  return { changes: [keepOwners(world, keep, 'some of its owners are gone or wait for it to go')] };
}

/** What depends on it goes first. */
function deleteInForeground(world: DependentWorld): Plan {
  const waiting = world.owners.filter(({ state }) => state === 'waiting').map(({ reference }) => reference);
  const blocked = new Set(waiting.filter(({ blockOwnerDeletion }) => blockOwnerDeletion).map(({ uid }) => uid));
  if (world.dependents === 'waiting' && blocked.size > 0) {
    // Perhaps a circle: its owners must not wait for it while it waits for them. The delete follows at the next look.
    return {
      changes: [unblockOwners(world, (uid) => blocked.has(uid), 'its owners and its dependents wait to go')],
      requeueAfterMs: 0,
    };
  }
  return { changes: [deleteDependent(world, 'Foreground', 'its owner waits for it to go')] };
}

type Policy = DeleteChange['propagationPolicy'];

function policyOf({ metadata }: Stored): Policy {
  if (metadata.finalizers?.includes(ORPHAN_FINALIZER)) return 'Orphan';
  if (metadata.finalizers?.includes(FOREGROUND_FINALIZER)) return 'Foreground';
  return 'Background';
}

/** Only this very object in this very state: it may have found another owner meanwhile. */
function deleteDependent({ type, object }: CollectedObject, propagationPolicy: Policy, why: string): DeleteChange {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return { do: 'delete', type, name: { name, namespace }, uid, resourceVersion, propagationPolicy, why };
}

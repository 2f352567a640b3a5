/**
 * How an owner under deletion goes: after its dependents (foreground), or after they were let go (orphan). Pure. Both
 * end with the finalizer that the delete left; state is nowhere but in the objects.
 */
import {
  keepOwners,
  removeFinalizer,
  unblockOwners,
  type CollectedObject,
} from '#engine/controllers/garbage-collector/owner-patches.ts';
import { isOrphaning, isInForegroundDeletion } from '#engine/controllers/garbage-collector/metadata-only.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import { MAX_CHANGES, NOTHING, type Plan } from '#runtime/plan.ts';

export interface OrphanWorld extends CollectedObject {
  /** Objects that refer to it, as many as were found; none only if there are none. */
  readonly dependents: readonly CollectedObject[];
}

export function decideOrphan(world: OrphanWorld): Plan {
  const { object, dependents } = world;
  if (!isOrphaning(object)) return NOTHING;
  if (dependents.length === 0) {
    return { changes: [removeFinalizer(world, ORPHAN_FINALIZER, 'no object refers to it any more')] };
  }
  const { uid } = object.metadata;
  const changes = dependents
    .slice(0, MAX_CHANGES)
    .map((dependent) => keepOwners(dependent, (reference) => reference.uid !== uid, 'its owner leaves it behind'));
  return { changes, requeueAfterMs: 0 };
}

export interface ForegroundWorld extends CollectedObject {
  /** Whether a dependent holds it. */
  readonly isBlocked: boolean;
  /** Owners that it blocks and that it waits for itself. */
  readonly cyclicOwners: readonly string[];
}

export function decideForeground(world: ForegroundWorld): Plan {
  const { object, isBlocked, cyclicOwners } = world;
  if (!isInForegroundDeletion(object)) return NOTHING;
  if (!isBlocked) return { changes: [removeFinalizer(world, FOREGROUND_FINALIZER, 'no dependent blocks it any more')] };
  const blocking = new Set(
    (object.metadata.ownerReferences ?? [])
      .filter(({ uid, blockOwnerDeletion }) => blockOwnerDeletion && cyclicOwners.includes(uid))
      .map(({ uid }) => uid),
  );
  if (blocking.size === 0) return NOTHING;
  return { changes: [unblockOwners(world, (uid) => blocking.has(uid), 'it waits, in a circle, for itself')] };
}

/**
 * Decides the next step for an owner under deletion: it is removed after its dependents (foreground), or after they are
 * orphaned (orphan). Pure. Both end by removing the finalizer that the delete request added. The only state is in the
 * objects.
 */
import {
  keepOwners,
  withoutFinalizer,
  unblockOwners,
  type CollectedObject,
} from '#engine/controllers/garbage-collector/owner-patches.ts';
import { isOrphaning, isInForegroundDeletion } from '#engine/controllers/garbage-collector/metadata-only.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import { MAX_CHANGES, EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface OrphanWorld extends CollectedObject {
  /** Objects that refer to the owner. May be incomplete, but is empty only if there are none. */
  readonly dependents: readonly CollectedObject[];
}

export function decideOrphan(world: OrphanWorld): Plan {
  const { object, dependents } = world;
  if (!isOrphaning(object)) return EMPTY_PLAN;
  if (dependents.length === 0) {
    return { changes: [withoutFinalizer(world, ORPHAN_FINALIZER, 'no object refers to it')] };
  }
  const { uid } = object.metadata;
  const changes = dependents
    .slice(0, MAX_CHANGES)
    .map((dependent) =>
      keepOwners(dependent, (reference) => reference.uid !== uid, 'its owner is deleted with propagationPolicy Orphan'),
    );
  return { changes, requeueAfterMs: 0 };
}

interface ForegroundWorld extends CollectedObject {
  /** True if a dependent blocks the deletion. */
  readonly isBlocked: boolean;
  /** The uids of owners in foreground deletion that are part of a cycle with this object. */
  readonly cyclicOwners: readonly string[];
}

export function decideForeground(world: ForegroundWorld): Plan {
  const { object, isBlocked, cyclicOwners } = world;
  if (!isInForegroundDeletion(object)) return EMPTY_PLAN;
  if (!isBlocked)
    return { changes: [withoutFinalizer(world, FOREGROUND_FINALIZER, 'no dependent blocks its deletion')] };
  const blocking = new Set(
    (object.metadata.ownerReferences ?? [])
      .filter(({ uid, blockOwnerDeletion }) => blockOwnerDeletion && cyclicOwners.includes(uid))
      .map(({ uid }) => uid),
  );
  if (blocking.size === 0) return EMPTY_PLAN;
  return { changes: [unblockOwners(world, (uid) => blocking.has(uid), 'its owners wait for it in a cycle')] };
}

/**
 * Decides the mark that makes a policy refuse to delete an object: it names the protected VMs that would be lost with
 * the object. A mark that is missing, wrong or not needed any more is corrected, also if a user changed it. Pure.
 */
import { formatProtectedNames, PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export interface MarkWorld {
  readonly type: ResourceType;
  readonly object: Stored;
  /** The protected VMs that would be lost with the object, sorted; only the first of many. */
  readonly vms: readonly string[];
  /** Time until an existing mark may be reworded. Adding and removing a mark is never delayed. */
  readonly waitMs: number;
}

export function decideMark({ type, object, vms, waitMs }: MarkWorld): Plan {
  const { deletionTimestamp, annotations } = object.metadata;
  // A mark has no effect on an object under deletion.
  if (deletionTimestamp !== undefined) return EMPTY_PLAN;
  const mark = annotations?.[PROTECTED_VMS_ANNOTATION];
  const wanted = vms.length === 0 ? undefined : formatProtectedNames(vms);
  if (mark === wanted) return EMPTY_PLAN;
  // An empty mark does not protect, so replacing it is not delayed.
  if (mark && wanted !== undefined && waitMs > 0) return { changes: [], requeueAfterMs: waitMs };
  return { changes: [writeMark(type, object, wanted)] };
}

/** Writes the mark with the observed version: an object that was changed meanwhile is reconciled first. */
function writeMark(type: ResourceType, { metadata }: Stored, mark: string | undefined): Plan['changes'][number] {
  const { name, namespace, uid, resourceVersion } = metadata;
  const annotations = { [PROTECTED_VMS_ANNOTATION]: mark ?? null };
  return {
    do: 'patch',
    type,
    name: { name, namespace },
    uid,
    patch: { type: 'merge', body: { metadata: { resourceVersion, annotations } } },
    why: mark === undefined ? 'no protected VM needs the object any more' : `protected VMs need the object: ${mark}`,
  };
}

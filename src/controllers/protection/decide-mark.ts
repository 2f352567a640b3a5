/**
 * The mark that makes a policy refuse to delete an object: the protected VMs that would be lost with it, or none. Written
 * when it is missing, wrong or to go, by whomever it was changed. Pure.
 */
import { namesOfProtected, PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface MarkWorld {
  readonly type: ResourceType;
  readonly object: Stored;
  /** The protected VMs that would be lost with it, sorted; of many only the first. */
  readonly vms: readonly string[];
  /** How long another wording of the mark has to wait. That it comes or goes never waits. */
  readonly waitMs: number;
}

export function decideMark({ type, object, vms, waitMs }: MarkWorld): Plan {
  const { deletionTimestamp, annotations } = object.metadata;
  // Too late: what is being deleted goes, marked or not.
  if (deletionTimestamp !== undefined) return NOTHING;
  const mark = annotations?.[PROTECTED_VMS_ANNOTATION];
  const wanted = vms.length === 0 ? undefined : namesOfProtected(vms);
  if (mark === wanted) return NOTHING;
  // An empty mark protects from nothing.
  if (mark && wanted !== undefined && waitMs > 0) return { changes: [], requeueAfterMs: waitMs };
  return { changes: [writeMark(type, object, wanted)] };
}

/** Only in the state that was seen: what has changed meanwhile is looked at first. */
function writeMark(type: ResourceType, { metadata }: Stored, mark: string | undefined): Plan['changes'][number] {
  const { name, namespace, uid, resourceVersion } = metadata;
  const annotations = { [PROTECTED_VMS_ANNOTATION]: mark ?? null };
  return {
    do: 'patch',
    type,
    name: { name, namespace },
    uid,
    patch: { type: 'merge', body: { metadata: { resourceVersion, annotations } } },
    why: mark === undefined ? 'no protected VM is lost with it any more' : `it is needed by the protected VM ${mark}`,
  };
}

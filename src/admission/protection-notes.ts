/**
 * Who has protected a VM from deletion, or ended that, and when: noted by us in the write that does it, and by nobody
 * else. The reason is the business of who protects; it ends with the protection.
 */
import type { AdmissionRequest, PatchOperation } from '#admission/review.ts';
import {
  isProtected,
  PROTECTION_AT_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_REASON_ANNOTATION,
} from '#api/delete-protection.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/** The value of each note as it is to be; undefined where there is to be none. */
type Notes = readonly (readonly [key: string, value: unknown])[];

export function noteProtection({ object, oldObject, user }: AdmissionRequest, now: string): PatchOperation[] {
  if (object === undefined) return [];
  const was = oldObject !== undefined && isProtected(oldObject);
  const is = isProtected(object);
  const ended = was && !is ? endedReason(object, oldObject) : [];
  const notes: Notes =
    was === is
      ? [PROTECTION_BY_ANNOTATION, PROTECTION_AT_ANNOTATION].map((key) => [key, noteOf(oldObject, key)] as const)
      : [[PROTECTION_BY_ANNOTATION, user], [PROTECTION_AT_ANNOTATION, now], ...ended];
  return patchNotes(object, notes);
}

/** Unless the very same write says why it ends. */
function endedReason(object: KubeObject, oldObject: KubeObject): Notes {
  const [before, after] = [oldObject, object].map((one) => noteOf(one, PROTECTION_REASON_ANNOTATION));
  return before === after ? [[PROTECTION_REASON_ANNOTATION, undefined]] : [];
}

function noteOf(object: KubeObject | undefined, key: string): unknown {
  const annotations: unknown = object?.metadata.annotations;
  return isRecord(annotations) ? annotations[key] : undefined;
}

/** Only what is not as it should be. Annotations of another type are left for the server to refuse. */
function patchNotes({ metadata }: KubeObject, notes: Notes): PatchOperation[] {
  const present: unknown = metadata.annotations;
  if (present === undefined || present === null) {
    const wanted = notes.filter(([, value]) => value !== undefined);
    if (wanted.length === 0) return [];
    return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(wanted) }];
  }
  if (!isRecord(present)) return [];
  return notes
    .filter(([key, value]) => present[key] !== value)
    .map(([key, value]) => {
      const path = formatPointer(['metadata', 'annotations', key]);
      return value === undefined ? { op: 'remove', path } : { op: 'add', path, value };
    });
}

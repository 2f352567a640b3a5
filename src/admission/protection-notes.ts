/**
 * Who has protected a VM from deletion, or ended that, and when: noted by us in the write that does it, and by nobody
 * else. The reason is the business of who protects; it ends with the protection.
 */
import { noteOf, type Notes } from '#admission/annotation-patch.ts';
import type { AdmissionRequest } from '#admission/review.ts';
import {
  isProtected,
  PROTECTION_AT_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_REASON_ANNOTATION,
} from '#api/delete-protection.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Returns the notes on the protection of a VM as they are after the write. */
export function protectionNotes({ object, oldObject, user }: AdmissionRequest, now: string): Notes {
  if (object === undefined) return [];
  const was = oldObject !== undefined && isProtected(oldObject);
  const is = isProtected(object);
  const ended = was && !is ? endedReason(object, oldObject) : [];
  return was === is
    ? [PROTECTION_BY_ANNOTATION, PROTECTION_AT_ANNOTATION].map((key) => [key, noteOf(oldObject, key)] as const)
    : [[PROTECTION_BY_ANNOTATION, user], [PROTECTION_AT_ANNOTATION, now], ...ended];
}

/** Unless the very same write says why it ends. */
function endedReason(object: KubeObject, oldObject: KubeObject): Notes {
  const [before, after] = [oldObject, object].map((one) => noteOf(one, PROTECTION_REASON_ANNOTATION));
  return before === after ? [[PROTECTION_REASON_ANNOTATION, undefined]] : [];
}

/**
 * Records on a VM who protected it from deletion, or ended the protection, and when. Only admission writes these
 * annotations. The reason is written by the user and removed with the protection.
 */
import { readAnnotation, type AnnotationValues } from '#admission/annotation-patch.ts';
import type { ReviewRequest } from '#admission/review.ts';
import {
  isProtected,
  PROTECTION_AT_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Returns the annotations about the protection of a VM after the write. */
export function recordProtection({ object, oldObject, user }: ReviewRequest, now: string): AnnotationValues {
  if (object === undefined) return [];
  const wasProtected = oldObject !== undefined && isProtected(oldObject);
  const isNowProtected = isProtected(object);
  const reason = wasProtected && !isNowProtected ? removeReason(object, oldObject) : [];
  return wasProtected === isNowProtected
    ? [PROTECTION_BY_ANNOTATION, PROTECTION_AT_ANNOTATION].map((key) => [key, readAnnotation(oldObject, key)] as const)
    : [[PROTECTION_BY_ANNOTATION, user], [PROTECTION_AT_ANNOTATION, now], ...reason];
}

/** Removes the reason, unless the same write sets a new one. */
function removeReason(object: KubeObject, oldObject: KubeObject): AnnotationValues {
  const [before, after] = [oldObject, object].map((one) => readAnnotation(one, PROTECTION_REASON_ANNOTATION));
  return before === after ? [[PROTECTION_REASON_ANNOTATION, undefined]] : [];
}

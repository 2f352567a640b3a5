/**
 * Records on a VM who changed which identity-relevant part of its template (api/identity/identity-edits.ts). The annotation in
 * the request is ignored, so that it can be neither forged nor removed. A write that changes no such part leaves it
 * unchanged.
 */
import { readAnnotation, type AnnotationValues } from '#admission/annotation-patch.ts';
import type { ReviewRequest } from '#admission/review.ts';
import {
  ACTING_FOR_ANNOTATION,
  type Edit,
  IDENTITY_EDITS_ANNOTATION,
  identityParts,
  formatEdits,
  readActingFor,
  readEdits,
} from '#api/identity/identity-edits.ts';
import { LEGACY_RULE, legacyUuid } from '#api/identity/legacy-uuid.ts';
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import { isOwnAccount } from '#api/own-accounts.ts';
import { deepEqual } from '#kube/deep.ts';

/** Parts that cannot be removed: a write without them keeps the stored value or is refused. */
const KEPT: ReadonlySet<string> = new Set(['firmware.uuid', 'firmware.serial']);

export function recordIdentityEdits(request: ReviewRequest, now: string): AnnotationValues {
  const { object, oldObject } = request;
  if (object === undefined) return [];
  const edits = new Map<string, Edit>(readEdits(readAnnotation(oldObject, IDENTITY_EDITS_ANNOTATION)));
  const changed = changedParts(request).filter((part) => !isFilledIn(request, part));
  for (const part of changed) {
    edits.delete(part);
    edits.set(part, { at: now, ...authorOf(request, part) });
  }
  const isChanged = oldObject === undefined || changed.length > 0;
  const notes = isChanged ? formatEdits(edits) : readAnnotation(oldObject, IDENTITY_EDITS_ANNOTATION);
  return [
    [IDENTITY_EDITS_ANNOTATION, notes],
    [ACTING_FOR_ANNOTATION, undefined],
  ];
}

/**
 * Reports whether our controller filled in the default machine type. The change was made by the user who cleared the
 * type.
 */
function isFilledIn({ user, oldObject }: ReviewRequest, part: string): boolean {
  return part === 'machine.type' && isOwnAccount(user) && !identityParts(oldObject).has(part);
}

function changedParts({ object, oldObject }: ReviewRequest): string[] {
  if (oldObject === undefined) return ['created'];
  const [before, after] = [identityParts(oldObject), identityParts(object)];
  const parts = new Set([...after.keys(), ...before.keys()]);
  return [...parts].filter(
    (part) => !deepEqual(before.get(part), after.get(part)) && !(KEPT.has(part) && !after.has(part)),
  );
}

/** Returns the user. For our own components, returns the user on whose behalf they write, or the cause. */
function authorOf({ user, object, oldObject, name }: ReviewRequest, part: string): Pick<Edit, 'by' | 'cause'> {
  if (!isOwnAccount(user)) return { by: user };
  const actingFor = readActingFor(readAnnotation(object, ACTING_FOR_ANNOTATION));
  if (actingFor !== undefined) return actingFor;
  const [restore, earlier] = [object, oldObject].map((one) => readAnnotation(one, LAST_RESTORE_ANNOTATION));
  if (typeof restore === 'string' && restore !== earlier)
    return { cause: `VirtualMachineRestore ${restoreName(restore)}` };
  if (part === 'firmware.uuid' && identityParts(object).get(part) === legacyUuid(name)) return { cause: LEGACY_RULE };
  return { cause: `a write of ${user}` };
}

/** Returns the name of a restore from LAST_RESTORE_ANNOTATION, `<name>-<uid>`. */
const restoreName = (mark: string) => mark.replace(/-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '');

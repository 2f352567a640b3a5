/**
 * Checks of a stored FieldsV1 without parsing: most writes do not touch most entries, and their manager already owns
 * what they change.
 */
import type { FieldSet } from '#kube/field-sets/field-set.ts';
import type { FieldsV1 } from '#engine/encoding/stored-object.ts';

const SELF = '.';

/** Reports whether any path is in both. */
export function touches(fields: FieldsV1, set: FieldSet): boolean {
  for (const [element, below] of set.children) {
    const at = fields[element] as FieldsV1 | undefined;
    if (at === undefined) continue;
    if (below.member && isMember(at)) return true;
    if (below.children.size > 0 && touches(at, below)) return true;
  }
  return false;
}

/** Reports whether all paths of the set are in the fields. */
export function coversFields(fields: FieldsV1, set: FieldSet): boolean {
  for (const [element, below] of set.children) {
    const at = fields[element] as FieldsV1 | undefined;
    if (at === undefined) return false;
    if (below.member && !isMember(at)) return false;
    if (below.children.size > 0 && !coversFields(at, below)) return false;
  }
  return true;
}

export function ownsNothing(fields: FieldsV1): boolean {
  for (const _ in fields) return false;
  return true;
}

/** A path without children is a member; others have an explicit mark. */
function isMember(fields: FieldsV1): boolean {
  for (const element in fields) return element === SELF || SELF in fields;
  return true;
}

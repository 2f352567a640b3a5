/** Removes fields and items from a value, as server-side apply does with fields that an applier no longer has. */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { isEmpty } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType } from './field-type.ts';
import { itemElement } from './list-item.ts';

/** The value of a field whose map or list lost its last item. */
type Emptied = undefined | null;

/**
 * Returns the value without the members of the set, each with everything in it. Also removes a map or list that thereby
 * lost its last item, except the root. (Kubernetes leaves null, which its kinds then remove.) The result shares
 * unchanged parts with the source.
 */
export function removeFields(value: unknown, removed: FieldSet, schema: Schema): unknown {
  return removeFrom(value, removed, schema, undefined);
}

/**
 * Like removeFields, but a map or list that lost its last item becomes null, so that it does not count as removed
 * itself.
 */
export function emptyFields(value: unknown, removed: FieldSet, schema: Schema): unknown {
  return removeFrom(value, removed, schema, null);
}

function removeFrom(value: unknown, removed: FieldSet, schema: Schema, emptied: Emptied): unknown {
  if (isEmpty(removed)) return value;
  const rest = remaining(value, removed, fieldTypeOf(schema), emptied);
  return rest ?? (isRecord(value) ? {} : null);
}

/** Returns undefined or null, as `emptied` says, if nothing is left. */
function remaining(value: unknown, removed: FieldSet, type: FieldType, emptied: Emptied): unknown {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return value;
    case 'list':
      return remainingList(value, removed, type.list!, emptied);
    case 'map':
      return remainingMap(value, removed, type.map!, emptied);
  }
}

function remainingList(value: unknown, removed: FieldSet, list: FieldListType, emptied: Emptied): unknown {
  if (!Array.isArray(value) || value.length === 0) return value;
  // A path inside an atomic value means the whole value.
  if (list.kind === 'atomic') return emptied;
  const kept: unknown[] = [];
  for (const item of value as unknown[]) {
    const element = itemElement(list, item);
    const removedBelow = element === undefined ? undefined : removed.children.get(element);
    if (removedBelow?.member === true) continue;
    const rest = removedBelow === undefined ? item : (remaining(item, removedBelow, list.items, emptied) ?? undefined);
    if (rest !== undefined) kept.push(rest);
  }
  return kept.length === 0 ? emptied : kept;
}

function remainingMap(value: unknown, removed: FieldSet, map: FieldMapType, emptied: Emptied): unknown {
  if (!isRecord(value)) return value;
  const names = Object.keys(value);
  if (names.length === 0) return value;
  if (map.atomic) return emptied;
  const kept: Record<string, unknown> = {};
  let found = 0;
  for (const name of names) {
    if (name === '__proto__') continue;
    const removedBelow = removed.children.get(elementOfField(map, name));
    if (removedBelow?.member === true) continue;
    const rest =
      removedBelow === undefined ? value[name] : remaining(value[name], removedBelow, typeOfField(map, name), emptied);
    if (rest === undefined) continue;
    kept[name] = rest;
    found++;
  }
  return found === 0 ? emptied : kept;
}

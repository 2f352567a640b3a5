/** Takes fields and items out of a value, as server-side apply does with what an applier no longer mentions. */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { isEmpty } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { itemElement } from './list-item.ts';

/** What becomes of a field whose map or list lost its last item. */
type Emptied = undefined | null;

/**
 * The value without the members of the set; a member goes with all that it holds. A map or list that thereby lost its
 * last item goes, too (Kubernetes leaves null, which its kinds then drop); the root stays. What did not change is shared
 * with the source.
 */
export function removeFields(value: unknown, gone: FieldSet, schema: Schema): unknown {
  return without(value, gone, schema, undefined);
}

/** The same, but what lost its last item stays as null: who compares fields sees that it was not removed itself. */
export function emptyFields(value: unknown, gone: FieldSet, schema: Schema): unknown {
  return without(value, gone, schema, null);
}

function without(value: unknown, gone: FieldSet, schema: Schema, emptied: Emptied): unknown {
  if (isEmpty(gone)) return value;
  const rest = remaining(value, gone, fieldTypeOf(schema), emptied);
  return rest ?? (isRecord(value) ? {} : null);
}

/** Undefined when nothing is left, or null if that is wanted. */
function remaining(value: unknown, gone: FieldSet, type: FieldType, emptied: Emptied): unknown {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return value;
    case 'list':
      return remainingList(value, gone, type.list!, emptied);
    case 'map':
      return remainingMap(value, gone, type.map!, emptied);
  }
}

function remainingList(value: unknown, gone: FieldSet, list: ListType, emptied: Emptied): unknown {
  if (!Array.isArray(value) || value.length === 0) return value;
  // Paths within what is atomic mean all of it.
  if (list.kind === 'atomic') return emptied;
  const kept: unknown[] = [];
  for (const item of value as unknown[]) {
    const element = itemElement(list, item);
    const lost = element === undefined ? undefined : gone.children.get(element);
    if (lost?.member === true) continue;
    const rest = lost === undefined ? item : (remaining(item, lost, list.items, emptied) ?? undefined);
    if (rest !== undefined) kept.push(rest);
  }
  return kept.length === 0 ? emptied : kept;
}

function remainingMap(value: unknown, gone: FieldSet, map: MapType, emptied: Emptied): unknown {
  if (!isRecord(value)) return value;
  const names = Object.keys(value);
  if (names.length === 0) return value;
  if (map.atomic) return emptied;
  const kept: Record<string, unknown> = {};
  let found = 0;
  for (const name of names) {
    if (name === '__proto__') continue;
    const lost = gone.children.get(elementOfField(map, name));
    if (lost?.member === true) continue;
    const rest = lost === undefined ? value[name] : remaining(value[name], lost, typeOfField(map, name), emptied);
    if (rest === undefined) continue;
    kept[name] = rest;
    found++;
  }
  return found === 0 ? emptied : kept;
}

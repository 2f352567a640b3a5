/** Takes fields and items out of a value, as server-side apply does with what an applier no longer mentions. */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { isEmpty } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { itemElement } from './list-item.ts';

/**
 * The value without the members of the set; a member goes with all that it holds. A map or list that thereby lost its
 * last item goes, too (Kubernetes leaves null, which its kinds then drop); the root stays. What did not change is shared
 * with the source.
 */
export function removeFields(value: unknown, gone: FieldSet, schema: Schema): unknown {
  if (isEmpty(gone)) return value;
  const rest = remaining(value, gone, fieldTypeOf(schema));
  if (rest !== undefined) return rest;
  return isRecord(value) ? {} : null;
}

/** Undefined when nothing is left. */
function remaining(value: unknown, gone: FieldSet, type: FieldType): unknown {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return value;
    case 'list':
      return remainingList(value, gone, type.list!);
    case 'map':
      return remainingMap(value, gone, type.map!);
  }
}

function remainingList(value: unknown, gone: FieldSet, list: ListType): unknown {
  if (!Array.isArray(value) || value.length === 0) return value;
  // Paths within what is atomic mean all of it.
  if (list.kind === 'atomic') return undefined;
  const kept: unknown[] = [];
  for (const item of value as unknown[]) {
    const element = itemElement(list, item);
    const lost = element === undefined ? undefined : gone.children.get(element);
    if (lost?.member === true) continue;
    const rest = lost === undefined ? item : remaining(item, lost, list.items);
    if (rest !== undefined) kept.push(rest);
  }
  return kept.length === 0 ? undefined : kept;
}

function remainingMap(value: unknown, gone: FieldSet, map: MapType): unknown {
  if (!isRecord(value)) return value;
  const names = Object.keys(value);
  if (names.length === 0) return value;
  if (map.atomic) return undefined;
  const kept: Record<string, unknown> = {};
  let found = 0;
  for (const name of names) {
    if (name === '__proto__') continue;
    const lost = gone.children.get(elementOfField(map, name));
    if (lost?.member === true) continue;
    const rest = lost === undefined ? value[name] : remaining(value[name], lost, typeOfField(map, name));
    if (rest === undefined) continue;
    kept[name] = rest;
    found++;
  }
  return found === 0 ? undefined : kept;
}

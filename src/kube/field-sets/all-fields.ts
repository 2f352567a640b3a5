/** The fields of an added or removed value: the value itself and everything in it. */
import { isRecord } from '#kube/meta.ts';
import { LEAF } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType } from './field-type.ts';
import { itemElement, itemError } from './list-item.ts';

/** Returns all fields of a value. `path` is its location, for errors. */
export function allFieldsOf(value: unknown, type: FieldType, path: string[]): FieldSet {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return LEAF;
    case 'list':
      return allFieldsOfList(value, type.list!, path);
    case 'map':
      return allFieldsOfMap(value, type.map!, path);
  }
}

function allFieldsOfList(value: unknown, list: FieldListType, path: string[]): FieldSet {
  if (list.kind === 'atomic' || !Array.isArray(value) || value.length === 0) return LEAF;
  const children = new Map<string, FieldSet>();
  for (const [i, item] of (value as unknown[]).entries()) {
    const element = itemElement(list, item);
    if (element === undefined) throw itemError(list, item, i, path);
    path.push(element);
    children.set(element, children.has(element) ? LEAF : allFieldsOf(item, list.items, path));
    path.pop();
  }
  return { member: true, children };
}

function allFieldsOfMap(value: unknown, map: FieldMapType, path: string[]): FieldSet {
  if (map.atomic || !isRecord(value)) return LEAF;
  const children = new Map<string, FieldSet>();
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const element = elementOfField(map, name);
    path.push(element);
    children.set(element, allFieldsOf(item, typeOfField(map, name), path));
    path.pop();
  }
  return children.size === 0 ? LEAF : { member: true, children };
}

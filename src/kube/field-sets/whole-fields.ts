/** The fields of a value that came or went: itself and all that is in it. */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { LEAF } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { itemElement, untypedItem } from './list-item.ts';

/** The path is where it is: errors tell it. */
export function wholeOf(value: unknown, type: FieldType, path: string[]): FieldSet {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return LEAF;
    case 'list':
      return wholeList(value, type.list!, path);
    case 'map':
      return wholeMap(value, type.map!, path);
  }
}

function wholeList(value: unknown, list: ListType, path: string[]): FieldSet {
  if (list.kind === 'atomic' || !Array.isArray(value) || value.length === 0) return LEAF;
  const children = new Map<string, FieldSet>();
  for (const [i, item] of (value as unknown[]).entries()) {
    const element = itemElement(list, item);
    if (element === undefined) throw untypedItem(list, item, i, path);
    path.push(element);
    children.set(element, children.has(element) ? LEAF : wholeOf(item, list.items, path));
    path.pop();
  }
  return { member: true, children };
}

function wholeMap(value: unknown, map: MapType, path: string[]): FieldSet {
  if (map.atomic || !isRecord(value)) return LEAF;
  const children = new Map<string, FieldSet>();
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const element = elementOfField(map, name);
    path.push(element);
    children.set(element, wholeOf(item, typeOfField(map, name), path));
    path.pop();
  }
  return children.size === 0 ? LEAF : { member: true, children };
}

/**
 * Whether a new object adds just these fields, as compareFields(empty, object) tells them; `empty` has maps without
 * anything in them at most. It may say no to what is so, never yes to what is not. Makes nothing, which is why there is it.
 */
export function addsJust(object: Record<string, unknown>, empty: object, added: FieldSet, schema: Schema): boolean {
  const { map } = fieldTypeOf(schema);
  return map !== undefined && !map.atomic && hasFields(object, map, added.children, empty);
}

function isWhole(value: unknown, type: FieldType, set: FieldSet): boolean {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return isLeaf(set);
    case 'list':
      return isWholeList(value, type.list!, set);
    case 'map':
      return isWholeMap(value, type.map!, set);
  }
}

const isLeaf = ({ member, children }: FieldSet) => member && children.size === 0;

function isWholeList(value: unknown, list: ListType, set: FieldSet): boolean {
  if (list.kind === 'atomic' || !Array.isArray(value) || value.length === 0) return isLeaf(set);
  const items = value as unknown[];
  if (!set.member || set.children.size !== items.length) return false;
  for (let i = 0; i < items.length; i++) {
    const element = itemElement(list, items[i]);
    const below = element === undefined ? undefined : set.children.get(element);
    if (below === undefined || !isWhole(items[i], list.items, below)) return false;
  }
  return true;
}

function isWholeMap(value: unknown, map: MapType, set: FieldSet): boolean {
  if (map.atomic || !isRecord(value)) return isLeaf(set);
  return set.member && hasFields(value, map, set.children, NOTHING);
}

const NOTHING = {};

function hasFields(value: Record<string, unknown>, map: MapType, fields: FieldSet['children'], there: object): boolean {
  let found = 0;
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const below = fields.get(elementOfField(map, name));
    if (below === undefined) return false;
    found++;
    const type = typeOfField(map, name);
    if (there === NOTHING || !Object.hasOwn(there, name)) {
      if (!isWhole(item, type, below)) return false;
      continue;
    }
    // A map that was there is not added itself.
    const fits = !below.member && type.map !== undefined && !type.map.atomic && isRecord(item);
    if (!fits || !hasFields(item, type.map, below.children, NOTHING)) return false;
  }
  return found === fields.size;
}

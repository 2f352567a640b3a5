/**
 * The fields that a manager owns after writing a whole value: every leaf, every item of a set, map list or free map,
 * and atomic values as a whole. Named fields that only contain others are not owned themselves.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { asMember, isEmpty, LEAF, NO_FIELDS } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { DEDUCED, fieldTypeOf, shapeOf } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType } from './field-type.ts';
import { itemElement } from './list-item.ts';
import { fieldElement } from './path-element.ts';

/** Returns the owned fields. Omits list items without a key, which check-config.ts refuses. */
export function fieldsOf(value: unknown, schema: Schema): FieldSet {
  return asRoot(ownedFields(value, fieldTypeOf(schema), false));
}

/** Returns addNamedFields(fieldsOf(value)) in one pass: named fields that contain others are members, too. */
export function namedFieldsOf(value: unknown, schema: Schema): FieldSet {
  return asRoot(ownedFields(value, fieldTypeOf(schema), true));
}

/** Makes a set whose root is not a member. */
const asRoot = ({ children }: FieldSet): FieldSet => (children.size === 0 ? NO_FIELDS : { member: false, children });

function ownedFields(value: unknown, type: FieldType, named: boolean): FieldSet {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return LEAF;
    case 'list':
      return ownedList(value, type.list!, named);
    case 'map':
      return ownedMap(value, type.map!, named);
  }
}

function ownedList(value: unknown, list: FieldListType, named: boolean): FieldSet {
  if (list.kind === 'atomic') return LEAF;
  if (!Array.isArray(value) || value.length === 0) return NO_FIELDS;
  const children = new Map<string, FieldSet>();
  for (const item of value as unknown[]) {
    const element = itemElement(list, item);
    if (element === undefined) continue;
    // Of items with the same key, only their presence is owned.
    children.set(element, children.has(element) ? LEAF : asMember(ownedFields(item, list.items, named)));
  }
  return { member: false, children };
}

function ownedMap(value: unknown, map: FieldMapType, named: boolean): FieldSet {
  if (map.atomic) return LEAF;
  if (!isRecord(value)) return NO_FIELDS;
  const children = new Map<string, FieldSet>();
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const field = map.fields.get(name);
    if (field === undefined) {
      children.set(fieldElement(name), asMember(ownedFields(item, map.others ?? DEDUCED, named)));
      continue;
    }
    const child = ownedFields(item, field.type, named);
    if (isNullOrEmptyMap(item)) children.set(field.element, asMember(child));
    else if (!isEmpty(child)) children.set(field.element, named ? asMember(child) : child);
  }
  return { member: false, children };
}

/** Reports whether a value is null or an empty map, which are owned themselves because they contain nothing. */
function isNullOrEmptyMap(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (value === null) return true;
  if (Array.isArray(value)) return false;
  for (const name in value) if (Object.hasOwn(value, name)) return false;
  return true;
}

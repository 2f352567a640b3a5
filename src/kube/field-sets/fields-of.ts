/**
 * What a manager owns who wrote a value whole: each leaf, each item of a set, map list or free map, and what is owned
 * whole because it is atomic. Named fields that only hold others are not owned themselves.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { asMember, isEmpty, LEAF, NO_FIELDS } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { DEDUCED, fieldTypeOf, shapeOf } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { itemElement } from './list-item.ts';
import { fieldElement } from './path-element.ts';

/** List items that have no key (check-config.ts refuses them) are left out. */
export function fieldsOf(value: unknown, schema: Schema): FieldSet {
  return below(owned(value, fieldTypeOf(schema), false));
}

/** withNamedFields(fieldsOf(value)) in one go: named fields that hold others are members, too. */
export function namedFieldsOf(value: unknown, schema: Schema): FieldSet {
  return below(owned(value, fieldTypeOf(schema), true));
}

/** Nobody owns the root itself. */
const below = ({ children }: FieldSet): FieldSet => (children.size === 0 ? NO_FIELDS : { member: false, children });

function owned(value: unknown, type: FieldType, named: boolean): FieldSet {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return LEAF;
    case 'list':
      return ownedList(value, type.list!, named);
    case 'map':
      return ownedMap(value, type.map!, named);
  }
}

function ownedList(value: unknown, list: ListType, named: boolean): FieldSet {
  if (list.kind === 'atomic') return LEAF;
  if (!Array.isArray(value) || value.length === 0) return NO_FIELDS;
  const children = new Map<string, FieldSet>();
  for (const item of value as unknown[]) {
    const element = itemElement(list, item);
    if (element === undefined) continue;
    // Of items with the same key, only that they are there is owned.
    children.set(element, children.has(element) ? LEAF : asMember(owned(item, list.items, named)));
  }
  return { member: false, children };
}

function ownedMap(value: unknown, map: MapType, named: boolean): FieldSet {
  if (map.atomic) return LEAF;
  if (!isRecord(value)) return NO_FIELDS;
  const children = new Map<string, FieldSet>();
  for (const name of Object.keys(value)) {
    const item = value[name];
    if (item === undefined) continue;
    const field = map.fields.get(name);
    if (field === undefined) {
      children.set(fieldElement(name), asMember(owned(item, map.others ?? DEDUCED, named)));
      continue;
    }
    const child = owned(item, field.type, named);
    if (isNothing(item)) children.set(field.element, asMember(child));
    else if (!isEmpty(child)) children.set(field.element, named ? asMember(child) : child);
  }
  return { member: false, children };
}

/** Null and the empty map hold nothing that could be owned in their stead. */
function isNothing(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (value === null) return true;
  if (Array.isArray(value)) return false;
  for (const name in value) if (Object.hasOwn(value, name)) return false;
  return true;
}

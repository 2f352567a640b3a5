/**
 * Whether a new object adds just the fields that another one added, which is so for most objects of a kind. Makes nothing,
 * and looks each field up once: that is why it is there beside compareFields.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { FieldSet } from './field-set.ts';
import { fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { itemElement } from './list-item.ts';
import { fieldNameOf } from './path-element.ts';

/** A set of fields with the types that its fields have. */
export interface Expected {
  readonly member: boolean;
  /** How many there are below. */
  readonly size: number;
  readonly fields: ReadonlyMap<string, ExpectedField>;
  /** By their element. */
  readonly items: ReadonlyMap<string, Expected>;
}

interface ExpectedField {
  readonly type: FieldType;
  readonly below: Expected;
}

/** Undefined where objects of the schema are no maps with fields of their own. */
export function expectedOf(added: FieldSet, schema: Schema): Expected | undefined {
  const type = fieldTypeOf(schema);
  return type.map === undefined || type.map.atomic ? undefined : expected(added, type);
}

function expected({ member, children }: FieldSet, { map, list }: FieldType): Expected {
  const fields = new Map<string, ExpectedField>();
  const items = new Map<string, Expected>();
  for (const [element, below] of children) {
    const name = fieldNameOf(element);
    if (name !== undefined && map !== undefined) {
      const type = typeOfField(map, name);
      fields.set(name, { type, below: expected(below, type) });
    } else if (list !== undefined) items.set(element, expected(below, list.items));
  }
  return { member, size: children.size, fields, items };
}

/**
 * As compareFields(empty, object) tells what is added; `empty` has maps without anything in them at most. It may say no
 * to what is so, never yes to what is not.
 */
export function addsJust(object: Record<string, unknown>, empty: object, all: Expected): boolean {
  const { fields, size } = all;
  let found = 0;
  for (const name in object) {
    const item = object[name];
    if (item === undefined) continue;
    const field = fields.get(name);
    if (field === undefined) return false;
    found++;
    const { type, below } = field;
    if (empty === NOTHING || !Object.hasOwn(empty, name)) {
      if (!isWhole(item, type, below)) return false;
      continue;
    }
    // A map that was there is not added itself.
    const fits = !below.member && type.map !== undefined && !type.map.atomic && isRecord(item);
    if (!fits || !addsJust(item, NOTHING, below)) return false;
  }
  return found === size;
}

const NOTHING = {};

function isWhole(value: unknown, type: FieldType, all: Expected): boolean {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return isLeaf(all);
    case 'list':
      return isWholeList(value, type.list!, all);
    case 'map':
      return isWholeMap(value, type.map!, all);
  }
}

const isLeaf = ({ member, size }: Expected) => member && size === 0;

function isWholeList(value: unknown, list: ListType, all: Expected): boolean {
  if (list.kind === 'atomic' || !Array.isArray(value) || value.length === 0) return isLeaf(all);
  const items = value as unknown[];
  if (!all.member || all.size !== items.length) return false;
  for (let i = 0; i < items.length; i++) {
    const element = itemElement(list, items[i]);
    const below = element === undefined ? undefined : all.items.get(element);
    if (below === undefined || !isWhole(items[i], list.items, below)) return false;
  }
  return true;
}

function isWholeMap(value: unknown, map: MapType, all: Expected): boolean {
  if (map.atomic || !isRecord(value)) return isLeaf(all);
  return all.member && addsJust(value, NOTHING, all);
}

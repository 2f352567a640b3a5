/**
 * Checks whether a new object adds exactly the fields that another one added, which is so for most objects of a kind. A
 * fast path beside compareFields: it creates nothing and looks each field up once.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import type { FieldSet } from './field-set.ts';
import { fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType } from './field-type.ts';
import { itemElement } from './list-item.ts';
import { fieldNameOf } from './path-element.ts';

/** A set of fields with the types of its fields. */
export interface ExpectedFields {
  readonly member: boolean;
  /** The number of children. */
  readonly size: number;
  readonly fields: ReadonlyMap<string, ExpectedField>;
  /** List items by their path element. */
  readonly items: ReadonlyMap<string, ExpectedFields>;
}

interface ExpectedField {
  readonly type: FieldType;
  readonly below: ExpectedFields;
}

/**
 * Adds the types to a set of added fields. Returns undefined if objects of the schema are not maps with named fields.
 */
export function expectFields(added: FieldSet, schema: Schema): ExpectedFields | undefined {
  const type = fieldTypeOf(schema);
  return type.map === undefined || type.map.atomic ? undefined : withTypes(added, type);
}

function withTypes({ member, children }: FieldSet, { map, list }: FieldType): ExpectedFields {
  const fields = new Map<string, ExpectedField>();
  const items = new Map<string, ExpectedFields>();
  for (const [element, below] of children) {
    const name = fieldNameOf(element);
    if (name !== undefined && map !== undefined) {
      const type = typeOfField(map, name);
      fields.set(name, { type, below: withTypes(below, type) });
    } else if (list !== undefined) items.set(element, withTypes(below, list.items));
  }
  return { member, size: children.size, fields, items };
}

/**
 * Reports whether compareFields(empty, object) would return exactly the expected fields as added. `empty` contains at
 * most empty maps. May return false although the fields are the same, but never true if they differ.
 */
export function addsExactly(object: Record<string, unknown>, empty: object, all: ExpectedFields): boolean {
  const { fields, size } = all;
  let found = 0;
  for (const name in object) {
    const item = object[name];
    if (item === undefined) continue;
    const field = fields.get(name);
    if (field === undefined) return false;
    found++;
    const { type, below } = field;
    if (empty === EMPTY || !Object.hasOwn(empty, name)) {
      if (!isAddedWhole(item, type, below)) return false;
      continue;
    }
    // An existing map is not added itself.
    const isGranularMap = !below.member && type.map !== undefined && !type.map.atomic && isRecord(item);
    if (!isGranularMap || !addsExactly(item, EMPTY, below)) return false;
  }
  return found === size;
}

const EMPTY = {};

function isAddedWhole(value: unknown, type: FieldType, all: ExpectedFields): boolean {
  switch (shapeOf(type, value)) {
    case 'scalar':
      return isLeaf(all);
    case 'list':
      return isListAddedWhole(value, type.list!, all);
    case 'map':
      return isMapAddedWhole(value, type.map!, all);
  }
}

const isLeaf = ({ member, size }: ExpectedFields) => member && size === 0;

function isListAddedWhole(value: unknown, list: FieldListType, all: ExpectedFields): boolean {
  if (list.kind === 'atomic' || !Array.isArray(value) || value.length === 0) return isLeaf(all);
  const items = value as unknown[];
  if (!all.member || all.size !== items.length) return false;
  for (let i = 0; i < items.length; i++) {
    const element = itemElement(list, items[i]);
    const below = element === undefined ? undefined : all.items.get(element);
    if (below === undefined || !isAddedWhole(items[i], list.items, below)) return false;
  }
  return true;
}

function isMapAddedWhole(value: unknown, map: FieldMapType, all: ExpectedFields): boolean {
  if (map.atomic || !isRecord(value)) return isLeaf(all);
  return all.member && addsExactly(value, EMPTY, all);
}

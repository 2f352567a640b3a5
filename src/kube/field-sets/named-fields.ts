/**
 * Adjusts sets to a schema: adds the named fields that only contain others, and adapts sets after a change of the
 * schema.
 */
import type { Schema } from '#kube/schema.ts';
import { asMember, LEAF } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { DEDUCED, fieldTypeOf } from './field-type.ts';
import type { FieldType } from './field-type.ts';

/**
 * Returns the set with every named field that contains members as a member itself. fieldsOf omits these fields, but
 * differences of sets need them for pruning.
 */
export function addNamedFields(set: FieldSet, schema: Schema): FieldSet {
  return addNamed(set, fieldTypeOf(schema));
}

function addNamed(set: FieldSet, type: FieldType): FieldSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const below = addNamed(child, typeBelow(type, element));
    const isNamed = element.startsWith('f:') && type.map?.fields.has(element.slice(2)) === true;
    children.set(element, isNamed ? asMember(below) : below);
  }
  return { member: set.member, children };
}

function typeBelow({ map, list }: FieldType, element: string): FieldType {
  if (element.startsWith('f:')) return map?.fields.get(element.slice(2))?.type ?? map?.others ?? DEDUCED;
  return element.startsWith('k:') ? (list?.items ?? DEDUCED) : DEDUCED;
}

/**
 * Adapts a set after a list or map of the schema became atomic: owners of a part of it own it as a whole. Returns the
 * same set if nothing became atomic. Nothing needs to be adapted if a list or map became granular.
 */
export function adaptFields(set: FieldSet, schema: Schema): FieldSet {
  return adapt(set, fieldTypeOf(schema), true);
}

function adapt(set: FieldSet, type: FieldType, isRoot: boolean): FieldSet {
  if (set.children.size === 0) return set;
  const isAtomic = type.map === undefined ? type.list !== undefined && isAtomicList(type) : type.map.atomic;
  if (isAtomic && !isRoot) return LEAF;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    const below = declaredTypeBelow(type, element);
    if (below === undefined) continue;
    const next = adapt(child, below, false);
    if (next !== child) (children ??= new Map(set.children)).set(element, next);
  }
  return children === undefined ? set : { member: set.member, children };
}

const isAtomicList = ({ scalar, list }: FieldType) => scalar === undefined && list?.kind === 'atomic';

/**
 * Returns undefined if the schema does not have the element: an unknown or untyped field cannot have changed its type.
 */
function declaredTypeBelow({ map, list }: FieldType, element: string): FieldType | undefined {
  if (map !== undefined) {
    const field = element.startsWith('f:') ? map.fields.get(element.slice(2))?.type : undefined;
    return field ?? (map.others === DEDUCED ? undefined : map.others);
  }
  return list?.items;
}

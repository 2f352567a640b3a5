/** Sets that know a schema: with the named fields that only hold others, and mended after a change of the schema. */
import type { Schema } from '#kube/schema.ts';
import { asMember, LEAF } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { DEDUCED, fieldTypeOf } from './field-type.ts';
import type { FieldType } from './field-type.ts';

/**
 * The set with every named field that holds members made a member itself. fieldsOf leaves these out; to prune by
 * differences of sets they must be there.
 */
export function withNamedFields(set: FieldSet, schema: Schema): FieldSet {
  return named(set, fieldTypeOf(schema));
}

function named(set: FieldSet, type: FieldType): FieldSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const below = named(child, typeBelow(type, element));
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
 * The set after a list or map of the schema became atomic: who owned something in it owns it whole. The same set when
 * nothing of the kind happened. What became granular needs no mending.
 */
export function mendFields(set: FieldSet, schema: Schema): FieldSet {
  return mended(set, fieldTypeOf(schema), true);
}

function mended(set: FieldSet, type: FieldType, isRoot: boolean): FieldSet {
  if (set.children.size === 0) return set;
  const isAtomic = type.map === undefined ? type.list !== undefined && ownsWhole(type) : type.map.atomic;
  if (isAtomic && !isRoot) return LEAF;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    const below = mendableBelow(type, element);
    if (below === undefined) continue;
    const next = mended(child, below, false);
    if (next !== child) (children ??= new Map(set.children)).set(element, next);
  }
  return children === undefined ? set : { member: set.member, children };
}

const ownsWhole = ({ scalar, list }: FieldType) => scalar === undefined && list?.kind === 'atomic';

/** Undefined where the schema does not say: what is unknown or untyped cannot have changed. */
function mendableBelow({ map, list }: FieldType, element: string): FieldType | undefined {
  if (map !== undefined) {
    const field = element.startsWith('f:') ? map.fields.get(element.slice(2))?.type : undefined;
    return field ?? (map.others === DEDUCED ? undefined : map.others);
  }
  return list?.items;
}

/** A set as the FieldsV1 of an entry, from its text: that is what is stored, and what objects of one shape share. */
import { sameFields, type FieldSet } from '#kube/field-sets/field-set.ts';
import { sortedElements } from '#kube/field-sets/path-element.ts';
import type { FieldsV1 } from '#engine/managed-fields/entries.ts';
import { fieldsOfText, isShared } from '#engine/managed-fields/stored-owners.ts';

/** Objects of one shape come one after the other: what was written for the last ones is written again. Large ones are not. */
const recent: { readonly set: FieldSet; readonly fields: FieldsV1 }[] = [];
const MAX_RECENT = 8;
let oldest = 0;

export function fieldsV1Of(set: FieldSet): FieldsV1 {
  for (const known of recent) if (sameFields(known.set, set)) return known.fields;
  const fields = newFieldsV1Of(set);
  if (isShared(fields)) {
    recent[oldest] = { set, fields };
    oldest = (oldest + 1) % MAX_RECENT;
  }
  return fields;
}

/** For a set that is known to be another than those before it. */
export function newFieldsV1Of(set: FieldSet): FieldsV1 {
  return fieldsOfText(fieldsText(set));
}

/** Canonical, without the value that formatFieldsV1 would make of it. */
function fieldsText({ children }: FieldSet): string {
  return `{${fieldsWithin(children)}}`;
}

function fieldsWithin(children: FieldSet['children']): string {
  let text = '';
  for (const element of sortedElements(children.keys())) {
    if (text !== '') text += ',';
    text += quoted(element);
    const below = children.get(element)!;
    if (below.children.size === 0) text += '{}';
    else text += `${below.member ? '{".":{},' : '{'}${fieldsWithin(below.children)}}`;
  }
  return text;
}

/** Names of fields and keys of items come again and again. */
const quotedElements = new Map<string, string>();
const MAX_QUOTED = 10_000;

function quoted(element: string): string {
  const known = quotedElements.get(element);
  if (known !== undefined) return known;
  if (quotedElements.size >= MAX_QUOTED) quotedElements.clear();
  const text = `${JSON.stringify(element)}:`;
  if (element.length <= 64) quotedElements.set(element, text);
  return text;
}

/** FieldsV1, the form in which managedFields keep a set: `{"f:spec":{".":{},"f:size":{}}}`. */
import { isRecord } from '#kube/meta.ts';
import { LEAF, NO_FIELDS, union } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import {
  compareGoStrings,
  isPlainItem,
  keyElement,
  keyPrefixes,
  sortedElements,
  valueElement,
} from './path-element.ts';

/** FieldsV1 that cannot be read; the message is Kubernetes'. */
export class FieldSetError extends Error {
  override readonly name = 'FieldSetError';
}

/**
 * Reads FieldsV1 from anybody. A path without others below it is a member; one with others only if it says so with `.`.
 * Throws FieldSetError.
 */
export function parseFieldsV1(json: unknown): FieldSet {
  const { children } = parsedNode(json);
  return children.size === 0 ? NO_FIELDS : { member: false, children };
}

function parsedNode(json: unknown): FieldSet {
  if (json === null) return LEAF;
  if (!isRecord(json)) throw new FieldSetError(`ReadMapCB: expect { or n, but found ${JSON.stringify(json)?.[0]}`);
  let member = false;
  let children: Map<string, FieldSet> | undefined;
  for (const key of Object.keys(json)) {
    if (key === '.') {
      member = true;
      continue;
    }
    const element = elementOf(key);
    if (element === undefined) continue;
    const child = parsedNode(json[key]);
    const known = (children ??= new Map<string, FieldSet>()).get(element);
    children.set(element, known === undefined ? child : union(known, child));
  }
  return children === undefined ? LEAF : { member, children };
}

function elementOf(key: string): string | undefined {
  try {
    return canonicalElement(key);
  } catch (error) {
    if (!(error instanceof FieldSetError)) throw error;
    throw new FieldSetError(`parsing key as path element: ${error.message}`, { cause: error });
  }
}

/**
 * The canonical spelling of an element that a client wrote; undefined for a kind of element that only a future version
 * may know.
 */
function canonicalElement(text: string): string | undefined {
  if (text.length < 2) throw new FieldSetError('key must be 2 characters long:');
  if (text[1] !== ':') throw new FieldSetError(`missing colon: ${text}`);
  switch (text[0]) {
    case 'f':
      return text;
    case 'v':
      return isPlainItem(text) ? text : valueElement(parsedText(text));
    case 'k': {
      if (isPlainItem(text)) return text;
      const key = parsedText(text);
      if (!isRecord(key)) throw new FieldSetError(`ReadObjectCB: expect { or n, but found ${text.slice(2, 3)}`);
      const names = Object.keys(key).sort(compareGoStrings);
      return keyElement(
        keyPrefixes(names),
        names.map((name) => key[name]),
      );
    }
    case 'i': {
      const index = text.slice(2);
      if (!/^[+-]?\d{1,15}$/.test(index)) {
        throw new FieldSetError(`strconv.Atoi: parsing ${JSON.stringify(index)}: invalid syntax`);
      }
      return `i:${Number(index) + 0}`;
    }
    default:
      return undefined;
  }
}

/** Keys and values are scalars in all but odd cases, and nobody may make us descend without end. */
const MAX_NESTING = 100;

function parsedText(element: string): unknown {
  if ((element.match(/[[{]/g)?.length ?? 0) > MAX_NESTING) throw new FieldSetError('exceeded max depth');
  try {
    return JSON.parse(element.slice(2));
  } catch (error) {
    throw new FieldSetError(`invalid JSON in ${JSON.stringify(element)}`, { cause: error });
  }
}

/** As a value, in canonical order. */
export function formatFieldsV1(set: FieldSet): Record<string, unknown> {
  return JSON.parse(fieldsText(set)) as Record<string, unknown>;
}

/** As JSON in canonical order, so that equal sets give equal bytes. */
export function fieldsText({ children }: FieldSet): string {
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

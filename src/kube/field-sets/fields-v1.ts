/** FieldsV1, the format of a set in managedFields: `{"f:spec":{".":{},"f:size":{}}}`. */
import { isRecord } from '#kube/meta.ts';
import { LEAF, NO_FIELDS, union } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { compareGoStrings, isPlainItem, keyElement, keyPrefixes, sortElements, valueElement } from './path-element.ts';

/** Invalid FieldsV1; the message is that of Kubernetes. */
export class FieldSetError extends Error {
  override readonly name = 'FieldSetError';
}

/**
 * Parses FieldsV1 of any client. A path without children is a member; a path with children only if it contains `.`.
 * Throws FieldSetError.
 */
export function parseFieldsV1(json: unknown): FieldSet {
  const { children } = parseNode(json);
  return children.size === 0 ? NO_FIELDS : { member: false, children };
}

function parseNode(json: unknown): FieldSet {
  if (json === null) return LEAF;
  if (!isRecord(json)) throw new FieldSetError(`ReadMapCB: expect { or n, but found ${JSON.stringify(json)?.[0]}`);
  let member = false;
  let children: Map<string, FieldSet> | undefined;
  for (const key of Object.keys(json)) {
    if (key === '.') {
      member = true;
      continue;
    }
    const element = parseElement(key);
    if (element === undefined) continue;
    const child = parseNode(json[key]);
    const known = (children ??= new Map<string, FieldSet>()).get(element);
    children.set(element, known === undefined ? child : union(known, child));
  }
  return children === undefined ? LEAF : { member, children };
}

function parseElement(key: string): string | undefined {
  try {
    return canonicalElement(key);
  } catch (error) {
    if (!(error instanceof FieldSetError)) throw error;
    throw new FieldSetError(`parsing key as path element: ${error.message}`, { cause: error });
  }
}

/**
 * Returns the canonical spelling of an element of a client, or undefined for an unknown kind of element, which only a
 * later version may have.
 */
function canonicalElement(text: string): string | undefined {
  if (text.length < 2) throw new FieldSetError('key must be 2 characters long:');
  if (text[1] !== ':') throw new FieldSetError(`missing colon: ${text}`);
  switch (text[0]) {
    case 'f':
      return text;
    case 'v':
      return isPlainItem(text) ? text : valueElement(parseContent(text));
    case 'k': {
      if (isPlainItem(text)) return text;
      const key = parseContent(text);
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

/** Bounds the recursion. Keys and values are nearly always scalars. */
const MAX_NESTING = 100;

function parseContent(element: string): unknown {
  if ((element.match(/[[{]/g)?.length ?? 0) > MAX_NESTING) throw new FieldSetError('exceeded max depth');
  try {
    return JSON.parse(element.slice(2));
  } catch (error) {
    throw new FieldSetError(`invalid JSON in ${JSON.stringify(element)}`, { cause: error });
  }
}

/** Returns the set as a value, in canonical order. */
export function formatFieldsV1(set: FieldSet): Record<string, unknown> {
  return JSON.parse(fieldsText(set)) as Record<string, unknown>;
}

/** Returns the set as JSON in canonical order, so that equal sets have equal bytes. */
export function fieldsText({ children }: FieldSet): string {
  return `{${formatChildren(children)}}`;
}

function formatChildren(children: FieldSet['children']): string {
  let text = '';
  for (const element of sortElements(children.keys())) {
    if (text !== '') text += ',';
    text += quoteElement(element);
    const child = children.get(element)!;
    if (child.children.size === 0) text += '{}';
    else text += `${child.member ? '{".":{},' : '{'}${formatChildren(child.children)}}`;
  }
  return text;
}

/** A cache, because the same names and keys occur again and again. */
const quotedElements = new Map<string, string>();
const MAX_QUOTED = 10_000;

function quoteElement(element: string): string {
  const known = quotedElements.get(element);
  if (known !== undefined) return known;
  if (quotedElements.size >= MAX_QUOTED) quotedElements.clear();
  const text = `${JSON.stringify(element)}:`;
  if (element.length <= 64) quotedElements.set(element, text);
  return text;
}

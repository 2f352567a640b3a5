/** The path element that identifies an item of a set or a map list. */
import { isRecord } from '#kube/meta.ts';
import type { FieldListType } from './field-type.ts';
import { describeElement, keyElement, soleKeyElement, valueElement } from './path-element.ts';

/** A value that does not have the type of its schema. The message is that of structured-merge-diff. */
export class FieldTypeError extends Error {
  override readonly name = 'FieldTypeError';
}

/** Returns the item's path element, or undefined if it has none (findItemError returns why). Not for atomic lists. */
export function itemElement(list: FieldListType, item: unknown): string | undefined {
  if (list.kind === 'set') return typeof item === 'object' || item === undefined ? undefined : valueElement(item);
  if (!isRecord(item)) return undefined;
  const [only] = list.keys;
  if (only !== undefined && list.keys.length === 1) {
    const value = keyValue(list, item, only);
    return value === undefined ? undefined : soleKeyElement(list.prefixes[0]!, value);
  }
  const values: unknown[] = [];
  for (const key of list.keys) {
    const value = keyValue(list, item, key);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return keyElement(list.prefixes, values);
}

function keyValue(list: FieldListType, item: Record<string, unknown>, key: string): unknown {
  if (Object.hasOwn(item, key) && item[key] !== undefined) return item[key];
  return list.items.map?.fields.get(key)?.default ?? undefined;
}

/** Returns why itemElement returned undefined. */
export function findItemError(list: FieldListType, item: unknown): string {
  if (list.kind === 'set') {
    if (Array.isArray(item)) return 'not supported: associative list with lists as elements';
    if (isRecord(item)) return "associative list without keys has an element that's a map type";
    return "associative list without keys has an element that's an explicit null";
  }
  if (item === null || item === undefined) return 'associative list with keys may not have a null element';
  if (!isRecord(item)) return 'associative list with keys may not have non-map elements';
  const missing = list.keys.find((key) => keyValue(list, item, key) === undefined);
  return `associative list with keys has an element that omits key field ${JSON.stringify(missing)} (and doesn't have default value)`;
}

/** Returns the error for an item without a path element. */
export function itemError(list: FieldListType, item: unknown, index: number, path: readonly string[]): FieldTypeError {
  return fieldTypeErrorAt(path, `element ${index}: ${findItemError(list, item)}`);
}

export function fieldTypeErrorAt(path: readonly string[], message: string): FieldTypeError {
  return new FieldTypeError(path.length === 0 ? message : `${path.map(describeElement).join('')}: ${message}`);
}

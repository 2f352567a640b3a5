/** How an item of a set or a map list is found again: its path element. */
import { isRecord } from '#kube/meta.ts';
import type { ListType } from './field-type.ts';
import { describeElement, keyElement, soleKeyElement, valueElement } from './path-element.ts';

/** A value that its schema cannot type, in structured-merge-diff's words. */
export class FieldTypeError extends Error {
  override readonly name = 'FieldTypeError';
}

/** The item's element, or undefined if it can have none (itemFault says why). Not for atomic lists. */
export function itemElement(list: ListType, item: unknown): string | undefined {
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

function keyValue(list: ListType, item: Record<string, unknown>, key: string): unknown {
  if (Object.hasOwn(item, key) && item[key] !== undefined) return item[key];
  return list.items.map?.fields.get(key)?.default ?? undefined;
}

/** Why itemElement gave none. */
export function itemFault(list: ListType, item: unknown): string {
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

/** For walkers that cannot go on. */
export function untypedItem(list: ListType, item: unknown, index: number, path: readonly string[]): FieldTypeError {
  return faultAt(path, `element ${index}: ${itemFault(list, item)}`);
}

export function faultAt(path: readonly string[], message: string): FieldTypeError {
  return new FieldTypeError(path.length === 0 ? message : `${path.map(describeElement).join('')}: ${message}`);
}

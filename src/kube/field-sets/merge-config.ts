/**
 * Merges an applied configuration into the live object, like Merge of structured-merge-diff. The configuration wins
 * field by field, items of map lists and sets are merged by their key, and atomic values are replaced. Never removes
 * anything: remove-fields.ts does.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType } from './field-type.ts';
import { fieldTypeErrorAt, itemElement, itemError } from './list-item.ts';
import { describeElement } from './path-element.ts';

/**
 * Returns the merged object. The configuration must have passed checkFieldTypes (check-config.ts). The result shares
 * parts with both inputs and must not be changed. Throws FieldTypeError if items of a list cannot be distinguished.
 */
export function mergeConfig(live: unknown, config: unknown, schema: Schema): unknown {
  return mergeValue(live, config, fieldTypeOf(schema), []);
}

function mergeValue(live: unknown, config: unknown, type: FieldType, path: string[]): unknown {
  if (config === undefined || live === config) return live;
  if (live === undefined) return config;
  switch (shapeOf(type, config)) {
    case 'scalar':
      return config;
    case 'list':
      return mergeLists(live, config, type.list!, path);
    case 'map':
      return mergeMaps(live, config, type.map!, path);
  }
}

function mergeMaps(live: unknown, config: unknown, map: FieldMapType, path: string[]): unknown {
  if (map.atomic) return config;
  const left = isRecord(live) ? live : {};
  const right = isRecord(config) ? config : {};
  const out: Record<string, unknown> = {};
  let found = 0;
  for (const name of Object.keys(left)) {
    if (name === '__proto__') continue;
    path.push(elementOfField(map, name));
    const value = mergeValue(left[name], ownValue(right, name), typeOfField(map, name), path);
    path.pop();
    if (value === undefined) continue;
    out[name] = value;
    found++;
  }
  for (const name of Object.keys(right)) {
    if (name === '__proto__' || Object.hasOwn(left, name) || right[name] === undefined) continue;
    out[name] = right[name];
    found++;
  }
  // If both sides are empty, null and `{}` stay different.
  return found === 0 ? config : out;
}

const ownValue = (map: Record<string, unknown>, name: string) => (Object.hasOwn(map, name) ? map[name] : undefined);

function mergeLists(live: unknown, config: unknown, list: FieldListType, path: string[]): unknown {
  if (list.kind === 'atomic') return config;
  const left = indexList(live, list, path, true);
  const right = indexList(config, list, path, false);
  if (left.order.length === 0 && right.order.length === 0) return config;
  return orderItems(left, right).map(({ element, from }) => {
    if (from !== 'both') return from.item;
    path.push(element);
    const value = mergeValue(left.items.get(element), right.items.get(element), list.items, path);
    path.pop();
    return value;
  });
}

interface IndexedList {
  /** The path elements by position, with duplicates. */
  readonly order: readonly string[];
  readonly values: readonly unknown[];
  /** Null for duplicates, which cannot be merged. */
  readonly items: ReadonlyMap<string, unknown>;
}

function indexList(
  value: unknown,
  list: FieldListType,
  path: readonly string[],
  allowDuplicates: boolean,
): IndexedList {
  const values = Array.isArray(value) ? (value as unknown[]) : [];
  const items = new Map<string, unknown>();
  const order = values.map((item, i) => {
    const element = itemElement(list, item);
    if (element === undefined) throw itemError(list, item, i, path);
    const isDuplicate = items.has(element);
    if (isDuplicate && !allowDuplicates)
      throw fieldTypeErrorAt(path, `duplicate entries for key ${describeElement(element)}`);
    items.set(element, isDuplicate ? null : item);
    return element;
  });
  return { order, values, items };
}

interface MergedItem {
  readonly element: string;
  readonly from: 'both' | { readonly item: unknown };
}

/**
 * Returns the items of the merged list in order: that of the configuration for its items, and every other live item
 * stays behind its predecessor.
 */
function orderItems(live: IndexedList, config: IndexedList): MergedItem[] {
  const out: MergedItem[] = [];
  const done = new Set<string>();
  const shared = config.order.filter((element) => live.items.has(element));
  let nextShared = 0;
  let l = 0;
  let c = 0;
  const takeConfig = () => {
    const element = config.order[c++]!;
    done.add(element);
    if (shared[nextShared] === element) nextShared++;
    out.push({ element, from: 'both' });
  };
  while (l < live.order.length || c < config.order.length) {
    const element = live.order[l];
    if (element === undefined) {
      takeConfig();
    } else if (element === config.order[c]) {
      takeConfig();
      l++;
    } else if (!config.items.has(element)) {
      out.push({ element, from: { item: live.values[l++] } });
    } else if (c < config.order.length && nextShared < shared.length && shared[nextShared] !== element) {
      // The configuration has this item at another position.
      l++;
    } else {
      if (done.has(element)) l++;
      if (c < config.order.length) takeConfig();
    }
  }
  return out;
}

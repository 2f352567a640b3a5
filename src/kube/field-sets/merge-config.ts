/**
 * Joins an applied configuration into the live object: structured-merge-diff's Merge. The configuration wins field by
 * field, items of map lists and sets are joined by their key, and what is atomic is replaced. Nothing is ever removed:
 * that is remove-fields.ts's.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType } from './field-type.ts';
import { faultAt, itemElement, untypedItem } from './list-item.ts';
import { describeElement } from './path-element.ts';

/**
 * The configuration must be without typeFaults (check-config.ts). The result shares parts with both, so it is to be
 * read, not written to. Throws FieldTypeError where list items cannot be told apart.
 */
export function mergeConfig(live: unknown, config: unknown, schema: Schema): unknown {
  return merged(live, config, fieldTypeOf(schema), []);
}

function merged(live: unknown, config: unknown, type: FieldType, path: string[]): unknown {
  if (config === undefined || live === config) return live;
  if (live === undefined) return config;
  switch (shapeOf(type, config)) {
    case 'scalar':
      return config;
    case 'list':
      return mergedList(live, config, type.list!, path);
    case 'map':
      return mergedMap(live, config, type.map!, path);
  }
}

function mergedMap(live: unknown, config: unknown, map: MapType, path: string[]): unknown {
  if (map.atomic) return config;
  const left = isRecord(live) ? live : {};
  const right = isRecord(config) ? config : {};
  const out: Record<string, unknown> = {};
  let found = 0;
  for (const name of Object.keys(left)) {
    if (name === '__proto__') continue;
    path.push(elementOfField(map, name));
    const value = merged(left[name], ownValue(right, name), typeOfField(map, name), path);
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
  // Where nothing is on either side, null and `{}` stay apart.
  return found === 0 ? config : out;
}

const ownValue = (map: Record<string, unknown>, name: string) => (Object.hasOwn(map, name) ? map[name] : undefined);

function mergedList(live: unknown, config: unknown, list: ListType, path: string[]): unknown {
  if (list.kind === 'atomic') return config;
  const left = indexed(live, list, path, true);
  const right = indexed(config, list, path, false);
  if (left.order.length === 0 && right.order.length === 0) return config;
  return itemOrder(left, right).map(({ element, from }) => {
    if (from !== 'both') return from.item;
    path.push(element);
    const value = merged(left.items.get(element), right.items.get(element), list.items, path);
    path.pop();
    return value;
  });
}

interface Indexed {
  /** Elements by place, doubles included. */
  readonly order: readonly string[];
  readonly values: readonly unknown[];
  /** Null for doubles, which nothing can be joined with. */
  readonly items: ReadonlyMap<string, unknown>;
}

function indexed(value: unknown, list: ListType, path: readonly string[], allowDoubles: boolean): Indexed {
  const values = Array.isArray(value) ? (value as unknown[]) : [];
  const items = new Map<string, unknown>();
  const order = values.map((item, i) => {
    const element = itemElement(list, item);
    if (element === undefined) throw untypedItem(list, item, i, path);
    const double = items.has(element);
    if (double && !allowDoubles) throw faultAt(path, `duplicate entries for key ${describeElement(element)}`);
    items.set(element, double ? null : item);
    return element;
  });
  return { order, values, items };
}

interface Taken {
  readonly element: string;
  readonly from: 'both' | { readonly item: unknown };
}

/**
 * The order of the joined list: that of the configuration for what it names, and each other live item stays behind the
 * one that it followed.
 */
function itemOrder(live: Indexed, config: Indexed): Taken[] {
  const out: Taken[] = [];
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
      // The configuration names it elsewhere.
      l++;
    } else {
      if (done.has(element)) l++;
      if (c < config.order.length) takeConfig();
    }
  }
  return out;
}

/**
 * Which fields one value has that another has not, and which differ: structured-merge-diff's Compare. Unlike fields-of.ts,
 * a named field that came or went is listed itself, with all that it held. Equal parts cost nothing but the look.
 */
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { LEAF, NO_FIELDS } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, ListType, MapType, Shape } from './field-type.ts';
import { itemElement, untypedItem } from './list-item.ts';
import { wholeOf } from './whole-fields.ts';

/** No path is in two of them; all are empty when the values are equal. */
export interface FieldComparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Throws FieldTypeError where an item of a changed list has no key. */
export function compareFields(before: unknown, after: unknown, schema: Schema): FieldComparison {
  const comparing = new Comparing();
  comparing.compare(before, after, fieldTypeOf(schema));
  const { added, modified, removed } = comparing;
  return { added: rootOf(added), modified: rootOf(modified), removed: rootOf(removed) };
}

const rootOf = ({ children }: FieldSet): FieldSet => (children.size === 0 ? NO_FIELDS : { member: false, children });

interface Draft {
  member: boolean;
  children: Map<string, FieldSet | Draft>;
}

type Outcome = 'added' | 'modified' | 'removed';

class Comparing {
  added: FieldSet = NO_FIELDS;
  modified: FieldSet = NO_FIELDS;
  removed: FieldSet = NO_FIELDS;
  readonly #path: string[] = [];

  compare(before: unknown, after: unknown, type: FieldType): void {
    if (before === after) return;
    if (before === undefined) return this.#put('added', wholeOf(after, type, this.#path));
    if (after === undefined) return this.#put('removed', wholeOf(before, type, this.#path));
    const shape = shapeOf(type, before);
    this.#compareAs(shape, before, after, type);
    // A value that changed its shape lost what it was and gained what it is.
    const next = shapeOf(type, after);
    if (next !== shape) this.#compareAs(next, before, after, type);
  }

  #compareAs(shape: Shape, before: unknown, after: unknown, type: FieldType): void {
    if (shape === 'scalar') this.#leaf(before, after);
    else if (shape === 'list') this.#lists(before, after, type.list!);
    else this.#maps(before, after, type.map!);
  }

  #leaf(before: unknown, after: unknown): void {
    if (!deepEqual(before, after)) this.#put('modified', LEAF);
  }

  #maps(before: unknown, after: unknown, map: MapType): void {
    const left = isRecord(before) ? before : EMPTY;
    const right = isRecord(after) ? after : EMPTY;
    if (map.atomic || (isVoid(left) && isVoid(right))) return this.#leaf(before, after);
    for (const name of Object.keys(left)) {
      const item = left[name];
      if (item !== undefined) this.#field(map, name, item, Object.hasOwn(right, name) ? right[name] : undefined);
    }
    for (const name of Object.keys(right)) {
      if (!Object.hasOwn(left, name) || left[name] === undefined) this.#field(map, name, undefined, right[name]);
    }
  }

  #field(map: MapType, name: string, before: unknown, after: unknown): void {
    if (before === after) return;
    this.#path.push(elementOfField(map, name));
    this.compare(before, after, typeOfField(map, name));
    this.#path.pop();
  }

  #lists(before: unknown, after: unknown, list: ListType): void {
    const left = Array.isArray(before) ? (before as unknown[]) : [];
    const right = Array.isArray(after) ? (after as unknown[]) : [];
    if (list.kind === 'atomic' || (left.length === 0 && right.length === 0)) return this.#leaf(before, after);
    if (deepEqual(left, right)) return;
    const leftItems = itemsByElement(left, list, this.#path);
    const rightItems = itemsByElement(right, list, this.#path);
    for (const [element, items] of leftItems) this.#items(list, element, items, rightItems.get(element) ?? []);
    for (const [element, items] of rightItems) if (!leftItems.has(element)) this.#items(list, element, [], items);
  }

  /** Items that share a key are as one atomic item. */
  #items(list: ListType, element: string, before: readonly unknown[], after: readonly unknown[]): void {
    this.#path.push(element);
    if (before.length < 2 && after.length < 2) {
      this.compare(before[0], after[0], list.items);
    } else if (before.length >= 2 && after.length >= 2) {
      this.#leaf(before, after);
    } else if (before.length >= 2) {
      this.compare(undefined, after[0], list.items);
      this.#put('removed', LEAF);
    } else {
      this.compare(before[0], undefined, list.items);
      this.#put('added', LEAF);
    }
    this.#path.pop();
  }

  /** Puts a subtree at the path; nobody owns the root itself, only what is below. */
  #put(outcome: Outcome, subtree: FieldSet): void {
    const last = this.#path.length - 1;
    if (last < 0) {
      this[outcome] = subtree;
      return;
    }
    if (this[outcome] === NO_FIELDS) this[outcome] = { member: false, children: new Map() };
    let node = this[outcome] as Draft;
    for (let i = 0; i < last; i++) {
      const element = this.#path[i]!;
      let next = node.children.get(element) as Draft | undefined;
      if (next === undefined || next.children.size === 0) {
        // Leaves are shared, so they are never written to.
        next = { member: next?.member ?? false, children: new Map() };
        node.children.set(element, next);
      }
      node = next;
    }
    const element = this.#path[last]!;
    node.children.set(element, subtree);
  }
}

const EMPTY: Record<string, unknown> = {};

function isVoid(map: Record<string, unknown>): boolean {
  for (const name in map) if (Object.hasOwn(map, name)) return false;
  return true;
}

function itemsByElement(items: readonly unknown[], list: ListType, path: readonly string[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const [i, item] of items.entries()) {
    const element = itemElement(list, item);
    if (element === undefined) throw untypedItem(list, item, i, path);
    const same = found.get(element);
    if (same === undefined) found.set(element, [item]);
    else same.push(item);
  }
  return found;
}

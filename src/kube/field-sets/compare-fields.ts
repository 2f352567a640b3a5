/**
 * Compares two values field by field, like Compare of structured-merge-diff. Unlike in fields-of.ts, an added or
 * removed named field is itself part of the result, with everything in it. Equal parts cost only the comparison.
 */
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { LEAF, NO_FIELDS } from './field-set.ts';
import type { FieldSet } from './field-set.ts';
import { elementOfField, fieldTypeOf, shapeOf, typeOfField } from './field-type.ts';
import type { FieldType, FieldListType, FieldMapType, Shape } from './field-type.ts';
import { itemElement, itemError } from './list-item.ts';
import { allFieldsOf } from './all-fields.ts';

/** The differences. No path is in two of the sets; all are empty if the values are equal. */
export interface FieldComparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Throws FieldTypeError if an item of a changed list has no key. */
export function compareFields(before: unknown, after: unknown, schema: Schema): FieldComparison {
  const comparer = new FieldComparer();
  comparer.compare(before, after, fieldTypeOf(schema));
  const { added, modified, removed } = comparer;
  return { added: asRoot(added), modified: asRoot(modified), removed: asRoot(removed) };
}

const asRoot = ({ children }: FieldSet): FieldSet => (children.size === 0 ? NO_FIELDS : { member: false, children });

interface Draft {
  member: boolean;
  children: Map<string, FieldSet | Draft>;
}

type Difference = 'added' | 'modified' | 'removed';

class FieldComparer {
  added: FieldSet = NO_FIELDS;
  modified: FieldSet = NO_FIELDS;
  removed: FieldSet = NO_FIELDS;
  readonly #path: string[] = [];

  compare(before: unknown, after: unknown, type: FieldType): void {
    if (before === after) return;
    if (before === undefined) return this.#add('added', allFieldsOf(after, type, this.#path));
    if (after === undefined) return this.#add('removed', allFieldsOf(before, type, this.#path));
    const shape = shapeOf(type, before);
    this.#compareAs(shape, before, after, type);
    // A value that changes its shape is compared as both: it lost the old content and gained the new one.
    const next = shapeOf(type, after);
    if (next !== shape) this.#compareAs(next, before, after, type);
  }

  #compareAs(shape: Shape, before: unknown, after: unknown, type: FieldType): void {
    if (shape === 'scalar') this.#compareLeaf(before, after);
    else if (shape === 'list') this.#compareLists(before, after, type.list!);
    else this.#compareMaps(before, after, type.map!);
  }

  #compareLeaf(before: unknown, after: unknown): void {
    if (!deepEqual(before, after)) this.#add('modified', LEAF);
  }

  #compareMaps(before: unknown, after: unknown, map: FieldMapType): void {
    const left = isRecord(before) ? before : EMPTY;
    const right = isRecord(after) ? after : EMPTY;
    if (map.atomic || (isEmptyMap(left) && isEmptyMap(right))) return this.#compareLeaf(before, after);
    for (const name of Object.keys(left)) {
      const item = left[name];
      if (item !== undefined) this.#compareField(map, name, item, Object.hasOwn(right, name) ? right[name] : undefined);
    }
    for (const name of Object.keys(right)) {
      if (!Object.hasOwn(left, name) || left[name] === undefined) this.#compareField(map, name, undefined, right[name]);
    }
  }

  #compareField(map: FieldMapType, name: string, before: unknown, after: unknown): void {
    if (before === after) return;
    this.#path.push(elementOfField(map, name));
    this.compare(before, after, typeOfField(map, name));
    this.#path.pop();
  }

  #compareLists(before: unknown, after: unknown, list: FieldListType): void {
    const left = Array.isArray(before) ? (before as unknown[]) : [];
    const right = Array.isArray(after) ? (after as unknown[]) : [];
    if (list.kind === 'atomic' || (left.length === 0 && right.length === 0)) return this.#compareLeaf(before, after);
    if (deepEqual(left, right)) return;
    const leftItems = itemsByElement(left, list, this.#path);
    const rightItems = itemsByElement(right, list, this.#path);
    for (const [element, items] of leftItems) this.#compareItems(list, element, items, rightItems.get(element) ?? []);
    for (const [element, items] of rightItems)
      if (!leftItems.has(element)) this.#compareItems(list, element, [], items);
  }

  /** Compares items with the same key. Several items with the same key count as one atomic item. */
  #compareItems(list: FieldListType, element: string, before: readonly unknown[], after: readonly unknown[]): void {
    this.#path.push(element);
    if (before.length < 2 && after.length < 2) {
      this.compare(before[0], after[0], list.items);
    } else if (before.length >= 2 && after.length >= 2) {
      this.#compareLeaf(before, after);
    } else if (before.length >= 2) {
      this.compare(undefined, after[0], list.items);
      this.#add('removed', LEAF);
    } else {
      this.compare(before[0], undefined, list.items);
      this.#add('added', LEAF);
    }
    this.#path.pop();
  }

  /** Adds a subtree at the current path. The root itself is never a member. */
  #add(difference: Difference, subtree: FieldSet): void {
    const last = this.#path.length - 1;
    if (last < 0) {
      this[difference] = subtree;
      return;
    }
    if (this[difference] === NO_FIELDS) this[difference] = { member: false, children: new Map() };
    let node = this[difference] as Draft;
    for (let i = 0; i < last; i++) {
      const element = this.#path[i]!;
      let next = node.children.get(element) as Draft | undefined;
      if (next === undefined || next.children.size === 0) {
        // Leaves are shared, so they are never changed.
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

function isEmptyMap(map: Record<string, unknown>): boolean {
  for (const name in map) if (Object.hasOwn(map, name)) return false;
  return true;
}

function itemsByElement(
  items: readonly unknown[],
  list: FieldListType,
  path: readonly string[],
): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>();
  for (const [i, item] of items.entries()) {
    const element = itemElement(list, item);
    if (element === undefined) throw itemError(list, item, i, path);
    const same = found.get(element);
    if (same === undefined) found.set(element, [item]);
    else same.push(item);
  }
  return found;
}

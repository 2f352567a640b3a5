/**
 * Pairs a value with the value that it replaces: fields by name, items of a list of type map by their keys, and other
 * items not at all. Equality is computed once, bottom-up.
 */
import { valueSchema } from '#engine/registry/structural/keywords.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

export class Correlation {
  readonly value: unknown;
  readonly old: unknown;
  readonly #schema: Schema;
  readonly #children = new Map<string | number, Correlation | undefined>();
  #oldItems: OldItems | undefined;
  #equal: boolean | undefined;

  constructor(value: unknown, old: unknown, schema: Schema) {
    this.value = value;
    this.old = old;
    this.#schema = schema;
  }

  /** Returns the pair of a child, or undefined if its old value is unknown. */
  at(key: string | number): Correlation | undefined {
    if (!this.#children.has(key)) {
      this.#children.set(key, typeof key === 'number' ? this.#item(key) : this.#field(key));
    }
    return this.#children.get(key);
  }

  /** Fields that the schema does not describe count as changed. */
  get isEqual(): boolean {
    return (this.#equal ??= this.#compare());
  }

  #field(key: string): Correlation | undefined {
    const { value, old } = this;
    if (!isRecord(value) || !isRecord(old) || !Object.hasOwn(value, key) || !Object.hasOwn(old, key)) return undefined;
    const { properties } = this.#schema;
    const own = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined;
    const schema = own ?? valueSchema(this.#schema);
    return schema && new Correlation(value[key], old[key], schema);
  }

  #item(index: number): Correlation | undefined {
    const { value, old } = this;
    const { items } = this.#schema;
    if (!Array.isArray(value) || !Array.isArray(old) || items === undefined) return undefined;
    if (this.#schema['x-kubernetes-list-type'] !== 'map') return undefined;
    this.#oldItems ??= new OldItems(old, this.#schema);
    const before = this.#oldItems.get(value[index]);
    return before === undefined ? undefined : new Correlation(value[index], before, items);
  }

  #compare(): boolean {
    const { value, old } = this;
    if (Array.isArray(value) && Array.isArray(old)) return this.#sameItems(value, old);
    if (isRecord(value) && isRecord(old)) {
      const keys = Object.keys(value);
      return keys.length === Object.keys(old).length && keys.every((key) => this.at(key)?.isEqual === true);
    }
    return deepEqual(value, old);
  }

  #sameItems(value: readonly unknown[], old: readonly unknown[]): boolean {
    if (value.length !== old.length) return false;
    if (this.#schema['x-kubernetes-list-type'] !== 'map') return deepEqual(value, old);
    return value.every((_, index) => this.at(index)?.isEqual === true);
  }
}

/** The items of a list of type map by key. The first of two equal keys wins. */
export class OldItems {
  readonly #items = new Map<string, unknown>();
  readonly #names: readonly string[];

  constructor(list: readonly unknown[], schema: Schema) {
    this.#names = schema['x-kubernetes-list-map-keys'] ?? [];
    for (const item of list) {
      const key = this.#keyOf(item);
      if (key !== undefined && !this.#items.has(key)) this.#items.set(key, item);
    }
  }

  get(item: unknown): unknown {
    const key = this.#keyOf(item);
    return key === undefined ? undefined : this.#items.get(key);
  }

  /** Returns undefined if a key is missing or not a scalar. */
  #keyOf(item: unknown): string | undefined {
    if (!isRecord(item) || this.#names.length === 0) return undefined;
    const values = this.#names.map((name) => (Object.hasOwn(item, name) ? item[name] : undefined));
    if (values.some((value) => value === undefined || (typeof value === 'object' && value !== null))) return undefined;
    return JSON.stringify(values);
  }
}

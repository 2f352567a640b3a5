/**
 * The objects of an informer, without their managedFields, and their indexes. Returns changes; the informer notifies.
 */
import { objectKey } from '#client/object-key.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

/** A change of an object. At least one of the two is defined. */
export interface ObjectChange<T extends KubeObject> {
  readonly old: Stored<T> | undefined;
  readonly new: Stored<T> | undefined;
}

/** Returns the values by which an object is found. Pure, because it is called again when the object is removed. */
export type IndexFunction<T extends KubeObject> = (object: Stored<T>) => readonly string[];

interface Index<T extends KubeObject> {
  readonly values: IndexFunction<T>;
  readonly keys: Map<string, Set<string>>;
}

/**
 * Removes managedFields, a large part of an object that readers of a cache do not need. Objects that are written back
 * without them keep their owners, because the server keeps managedFields that a request omits.
 */
function removeManagedFields(object: KubeObject): void {
  if (object.metadata.managedFields === undefined) return;
  const { managedFields: _, ...metadata } = object.metadata;
  object.metadata = metadata;
}

export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes = new Map<string, Index<T>>();

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>> = {}) {
    for (const [name, values] of Object.entries(indexes)) this.#indexes.set(name, { values, keys: new Map() });
  }

  /** Adds an index. Does nothing if there is one with this name. */
  addIndex(name: string, values: IndexFunction<T>): void {
    if (this.#indexes.has(name)) return;
    const index = { values, keys: new Map<string, Set<string>>() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) indexObject(index, key, object);
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): Stored<T> | undefined {
    return this.#objects.get(key);
  }

  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  list(): Stored<T>[] {
    return [...this.#objects.values()];
  }

  byIndex(name: string, value: string): Stored<T>[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`Cannot look up by index "${name}": there is no such index`);
    const found: Stored<T>[] = [];
    for (const key of index.keys.get(value) ?? []) found.push(this.#objects.get(key)!);
    return found;
  }

  countByIndex(name: string, value: string): number {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`Cannot count by index "${name}": there is no such index`);
    return index.keys.get(value)?.size ?? 0;
  }

  put(key: string, object: Stored<T>): ObjectChange<T> {
    removeManagedFields(object);
    const old = this.#objects.get(key);
    if (old !== undefined) this.#unindex(key, old);
    this.#objects.set(key, object);
    this.#index(key, object);
    return { old, new: object };
  }

  remove(key: string): ObjectChange<T> | undefined {
    const old = this.#objects.get(key);
    if (old === undefined) return undefined;
    this.#unindex(key, old);
    this.#objects.delete(key);
    return { old, new: undefined };
  }

  /** Replaces all objects. Returns the differences, deletions first. */
  replace(objects: readonly Stored<T>[]): [key: string, change: ObjectChange<T>][] {
    const next = new Map<string, Stored<T>>();
    for (const object of objects) {
      removeManagedFields(object);
      next.set(objectKey(object), object);
    }
    const changes: [string, ObjectChange<T>][] = [];
    for (const key of [...this.#objects.keys()]) {
      if (!next.has(key)) changes.push([key, this.remove(key)!]);
    }
    for (const [key, object] of next) {
      const old = this.#objects.get(key);
      if (old === undefined || !isSameState(old, object)) changes.push([key, this.put(key, object)]);
    }
    return changes;
  }

  #index(key: string, object: Stored<T>): void {
    for (const index of this.#indexes.values()) indexObject(index, key, object);
  }

  #unindex(key: string, object: Stored<T>): void {
    for (const { values, keys } of this.#indexes.values()) {
      for (const value of values(object)) {
        const indexed = keys.get(value);
        if (indexed?.delete(key) && indexed.size === 0) keys.delete(value);
      }
    }
  }
}

function indexObject<T extends KubeObject>({ values, keys }: Index<T>, key: string, object: Stored<T>): void {
  for (const value of values(object)) {
    const indexed = keys.get(value);
    if (indexed === undefined) keys.set(value, new Set([key]));
    else indexed.add(key);
  }
}

/** Compares uids as well, because a server that was restored may assign a resourceVersion again, but never a uid. */
function isSameState(a: Stored, b: Stored): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion && a.metadata.uid === b.metadata.uid;
}

/** Items by a key, oldest first: connections by address or user. */
export class Groups<T> {
  readonly #groups = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    return this.#groups.get(key)?.size ?? 0;
  }

  /** The item must not be in any group. */
  add(key: string, item: T): void {
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([item]));
    else group.add(item);
    this.#size++;
  }

  /** Does nothing if the item is not in the group. */
  delete(key: string, item: T): void {
    const group = this.#groups.get(key);
    if (group?.delete(item) !== true) return;
    this.#size--;
    if (group.size === 0) this.#groups.delete(key);
  }

  oldestOf(key: string): T | undefined {
    return this.#groups.get(key)?.values().next().value;
  }

  findOf(key: string, test: (item: T) => boolean): T | undefined {
    return this.#groups.get(key)?.values().find(test);
  }

  /** Returns the key with the most items. */
  largest(): string | undefined {
    let largest: string | undefined;
    for (const [key, group] of this.#groups) if (group.size > this.sizeOf(largest ?? '')) largest = key;
    return largest;
  }
}

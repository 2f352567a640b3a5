/**
 * Keys in order, of which only the first few are ever asked for. Taking one in or out is a binary search and the move of
 * a block of pointers: microseconds for ten thousands, and nothing is ever sorted.
 */
export class SortedKeys {
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  first(count: number): readonly string[] {
    return this.#keys.slice(0, count);
  }

  /** What is there already stays there once. */
  add(key: string): void {
    const at = this.#placeOf(key);
    if (this.#keys[at] !== key) this.#keys.splice(at, 0, key);
  }

  delete(key: string): void {
    const at = this.#placeOf(key);
    if (this.#keys[at] === key) this.#keys.splice(at, 1);
  }

  /** Of the first that does not come before it. */
  #placeOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A cache with a limited number of entries and a limited total weight. Removes the oldest entries first. */

interface CacheEntry<V> {
  readonly value: V;
  readonly weight: number;
}

export class BoundedCache<K, V> {
  readonly #maxEntries: number;
  readonly #maxWeight: number;
  readonly #entries = new Map<K, CacheEntry<V>>();
  #weight = 0;

  constructor({ maxEntries, maxWeight }: { maxEntries: number; maxWeight: number }) {
    this.#maxEntries = maxEntries;
    this.#maxWeight = maxWeight;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Stores the value, unless it is heavier than the limit of the whole cache. */
  set(key: K, value: V, weight: number): void {
    this.#drop(key);
    if (weight > this.#maxWeight) return;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#weight <= this.#maxWeight) return;
      this.#drop(oldest);
    }
  }

  #drop(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }
}

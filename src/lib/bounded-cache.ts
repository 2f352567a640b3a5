/** A cache that forgets what came first when it holds too many entries, or too much. */

interface Held<V> {
  readonly value: V;
  readonly weight: number;
}

export class BoundedCache<K, V> {
  readonly #maxEntries: number;
  readonly #maxWeight: number;
  readonly #entries = new Map<K, Held<V>>();
  #weight = 0;

  constructor({ maxEntries, maxWeight }: { maxEntries: number; maxWeight: number }) {
    this.#maxEntries = maxEntries;
    this.#maxWeight = maxWeight;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** What is heavier than the whole cache is not kept. */
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
    const held = this.#entries.get(key);
    if (held === undefined) return;
    this.#entries.delete(key);
    this.#weight -= held.weight;
  }
}

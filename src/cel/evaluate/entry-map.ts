/** Maps whose entries are in memory. */
import { REPEATED_KEY } from '#cel/evaluate/fault.ts';
import { canonicalKey } from '#cel/evaluate/map-key.ts';
import type { CanonicalKey } from '#cel/evaluate/map-key.ts';
import { CelFault, CelMap } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

interface Entry {
  readonly key: CelValue;
  readonly value: CelValue;
}

export class EntryMap extends CelMap {
  readonly #entries: ReadonlyMap<CanonicalKey, Entry>;

  private constructor(entries: ReadonlyMap<CanonicalKey, Entry>) {
    super();
    this.#entries = entries;
  }

  /** Returns a fault for duplicate keys, and for keys that are not string, bool, int or uint. */
  static of(entries: Iterable<readonly [CelValue, CelValue]>): EntryMap | CelFault {
    const known = new Map<CanonicalKey, Entry>();
    for (const [key, value] of entries) {
      const id = typeof key === 'number' ? undefined : canonicalKey(key);
      if (id === undefined) return new CelFault('unsupported key type');
      if (known.has(id)) return REPEATED_KEY;
      known.set(id, { key, value });
    }
    return new EntryMap(known);
  }

  override get size(): number {
    return this.#entries.size;
  }

  override get(key: CelValue): CelValue | undefined {
    const id = canonicalKey(key);
    return id === undefined ? undefined : this.#entries.get(id)?.value;
  }

  override has(key: CelValue): boolean {
    const id = canonicalKey(key);
    return id !== undefined && this.#entries.has(id);
  }

  override *keys(): Iterable<CelValue> {
    for (const { key } of this.#entries.values()) yield key;
  }
}

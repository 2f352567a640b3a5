/** Lists whose elements are in memory. */
import { CelList } from '#cel/value.ts';
import type { CelValue, Pairing } from '#cel/value.ts';

/**
 * A list of values. Several lists can share one array; each sees its first `size` elements. The longest list of an
 * array appends in place, and the shorter ones do not see the elements after their end. So `list + [x]` in a loop costs
 * only the elements that are added.
 */
export class ArrayList extends CelList {
  readonly #items: CelValue[];
  readonly #fixed: boolean;
  override readonly size: number;

  /**
   * Takes ownership of the array: the caller must not change it afterwards. A `fixed` list outlives one evaluation and
   * never grows in place.
   */
  constructor(items: CelValue[], fixed = false) {
    super();
    this.#items = items;
    this.#fixed = fixed;
    this.size = items.length;
  }

  override at(index: number): CelValue {
    return this.#items[index] as CelValue;
  }

  /** Reports whether the list can be extended without a copy. */
  get growsInPlace(): boolean {
    return !this.#fixed && this.#items.length === this.size;
  }

  with(value: CelValue): ArrayList {
    const items = this.#growing();
    items.push(value);
    return new ArrayList(items);
  }

  plus(more: CelList): ArrayList {
    const items = this.#growing();
    const { size } = more;
    for (let index = 0; index < size; index += 1) items.push(more.at(index));
    return new ArrayList(items);
  }

  #growing(): CelValue[] {
    return this.growsInPlace ? this.#items : this.#items.slice(0, this.size);
  }
}

/** The result of an operation on an associative list, which is associative too. */
export class PairedList extends ArrayList {
  readonly #pairing: Pairing;

  constructor(items: CelValue[], pairing: Pairing) {
    super(items, true);
    this.#pairing = pairing;
  }

  override get pairing(): Pairing {
    return this.#pairing;
  }
}

export const EMPTY_LIST: CelList = new ArrayList([], true);

export function itemsOf(list: CelList): CelValue[] {
  const items: CelValue[] = [];
  const { size } = list;
  for (let index = 0; index < size; index += 1) items.push(list.at(index));
  return items;
}

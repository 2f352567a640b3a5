/** Lists whose elements are in memory. */
import { CelList } from '#cel/value.ts';
import type { CelValue, ElementIdentity } from '#cel/value.ts';

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
  get canGrowInPlace(): boolean {
    return !this.#fixed && this.#items.length === this.size;
  }

  append(value: CelValue): ArrayList {
    const items = this.#growableItems();
    items.push(value);
    return new ArrayList(items);
  }

  concat(more: CelList): ArrayList {
    const items = this.#growableItems();
    const { size } = more;
    for (let index = 0; index < size; index += 1) items.push(more.at(index));
    return new ArrayList(items);
  }

  #growableItems(): CelValue[] {
    return this.canGrowInPlace ? this.#items : this.#items.slice(0, this.size);
  }
}

/** The result of an operation on an associative list, which is associative too. */
export class AssociativeList extends ArrayList {
  readonly #identity: ElementIdentity;

  constructor(items: CelValue[], identity: ElementIdentity) {
    super(items, true);
    this.#identity = identity;
  }

  override get identity(): ElementIdentity {
    return this.#identity;
  }
}

export const EMPTY_LIST: CelList = new ArrayList([], true);

export function itemsOf(list: CelList): CelValue[] {
  const items: CelValue[] = [];
  const { size } = list;
  for (let index = 0; index < size; index += 1) items.push(list.at(index));
  return items;
}

/** Lists whose elements are all there. */
import { CelList } from '#cel/value.ts';
import type { CelValue, Pairing } from '#cel/value.ts';

/**
 * Several lists may share one array, each seeing its first `size` elements. So `list + [x]` in a loop takes the time
 * of what is added: only the longest list of an array grows it; the shorter ones do not see what is behind their end.
 */
export class ArrayList extends CelList {
  readonly #items: CelValue[];
  readonly #fixed: boolean;
  override readonly size: number;

  /** Takes the array over: the caller must not change it any more. A `fixed` one is never grown: it outlives a run. */
  constructor(items: CelValue[], fixed = false) {
    super();
    this.#items = items;
    this.#fixed = fixed;
    this.size = items.length;
  }

  override at(index: number): CelValue {
    return this.#items[index] as CelValue;
  }

  /** Whether `plus` need not copy what is there. */
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

/** What became of one of Kubernetes' sets or maps is one, too. */
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

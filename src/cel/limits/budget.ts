/**
 * The cost budget of one evaluation. Each step charges the budget before it does its work, so that no expression can
 * block the process. As in Kubernetes, one unit is about the cost of one node of the tree, or of reading ten bytes.
 */
export class CostLimitError extends Error {
  override name = 'CostLimitError';
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

export class Budget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  /** Throws CostLimitError if the budget is exceeded. */
  charge(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new CostLimitError();
  }
}

/** Units for a call whose overload is selected by the types of its arguments, and for setting up a fold. */
export const CALL_COST = 2;
/**
 * Units for creating a list or a map, in addition to the cost of its elements. High, as in Kubernetes, because of the
 * memory.
 */
export const LIST_COST = 10;
export const MAP_COST = 30;

/** Units for a lookup by a computed key. */
export const LOOKUP_COST = 4;
const FEW_KEYS = 64;

/**
 * Returns the units for collecting the keys of a map of this size. The caller charges them once the size is known. V8
 * collects the keys of large objects slowly, but takes less than 50 ms for the largest object that a request can hold.
 */
export function keysCost(size: number): number {
  return size <= FEW_KEYS ? 0 : size * 6;
}

/** Returns the units for reading this many bytes or characters. */
export function bytesCost(length: number): number {
  return Math.ceil(length / 10);
}

/**
 * What an evaluation may cost. Each step charges before it does its work, so that no expression can hold the process:
 * one unit is about the cost of one node of the tree, or of ten bytes that are looked at, as in Kubernetes.
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

  /** Throws CostLimitError. */
  charge(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new CostLimitError();
  }
}

/** Units for a call whose overload is found by the types of its arguments, and for setting up a fold. */
export const CALL_COST = 2;
/** Units for making a list or a map, beside what its elements cost: as in Kubernetes, because memory is dear. */
export const LIST_COST = 10;
export const MAP_COST = 30;

/** Units for finding a value by a key that is computed. */
export const LOOKUP_COST = 4;
const FEW_KEYS = 64;

/**
 * Units for the keys of a map of that size, charged when they are known. V8 gathers those of large objects slowly, but
 * not longer than 50 ms for what one request may hold.
 */
export function keysCost(size: number): number {
  return size <= FEW_KEYS ? 0 : size * 6;
}

/** Units for walking over that many bytes or characters. */
export function bytesCost(length: number): number {
  return Math.ceil(length / 10);
}

/**
 * Limits how many VMs restart at a time. A VM, known here only by its index, takes a slot before the restart is
 * requested.
 */

export class RestartSlots {
  readonly #max: number;
  readonly #held: Set<number>;
  /** Waiting indexes in the order of their arrival. */
  readonly #waiting = new Set<number>();
  /** Indexes that were offered a slot and have neither taken nor released it. */
  readonly #offered = new Set<number>();

  /** `held` are the restarts of an earlier process; they may be more than `max`. */
  constructor(max: number, held: Iterable<number>) {
    this.#max = max;
    this.#held = new Set(held);
  }

  holds(index: number): boolean {
    return this.#held.has(index);
  }

  /** Takes a slot; returns false if the index has to wait. */
  take(index: number): boolean {
    this.#offered.delete(index);
    if (this.#held.has(index)) return true;
    if (this.#free() <= 0) {
      this.#waiting.add(index);
      return false;
    }
    this.#waiting.delete(index);
    this.#held.add(index);
    return true;
  }

  /** Gives up the slot, or the place in the queue. */
  release(index: number): void {
    this.#held.delete(index);
    this.#waiting.delete(index);
    this.#offered.delete(index);
  }

  /** Offers free slots to waiting indexes and returns these; each must take or release its slot. */
  offerFreeSlots(): number[] {
    const next: number[] = [];
    for (const index of this.#waiting) {
      if (this.#free() <= 0) break;
      this.#waiting.delete(index);
      this.#offered.add(index);
      next.push(index);
    }
    return next;
  }

  #free(): number {
    return this.#max - this.#held.size - this.#offered.size;
  }
}

/** How many VMs restart at a time, and who is next. Knows nothing of VMs; a slot is held from before the request on. */

export class RestartSlots {
  readonly #max: number;
  readonly #held: Set<number>;
  /** In the order in which they came. */
  readonly #waiting = new Set<number>();
  /** Were told that there is one, and have not looked yet. */
  readonly #called = new Set<number>();

  /** `held`: of those that restarted when the process before this one ended; they may be more than `max`. */
  constructor(max: number, held: Iterable<number>) {
    this.#max = max;
    this.#held = new Set(held);
  }

  holds(index: number): boolean {
    return this.#held.has(index);
  }

  /** False where it has to wait. */
  take(index: number): boolean {
    this.#called.delete(index);
    if (this.#held.has(index)) return true;
    if (this.#free() <= 0) {
      this.#waiting.add(index);
      return false;
    }
    this.#waiting.delete(index);
    this.#held.add(index);
    return true;
  }

  /** It needs none, any more or for now. */
  release(index: number): void {
    this.#held.delete(index);
    this.#waiting.delete(index);
    this.#called.delete(index);
  }

  /** Those who wait and now find one free; each is to look, and takes it or releases. */
  call(): number[] {
    const next: number[] = [];
    for (const index of this.#waiting) {
      if (this.#free() <= 0) break;
      this.#waiting.delete(index);
      this.#called.add(index);
      next.push(index);
    }
    return next;
  }

  #free(): number {
    return this.#max - this.#held.size - this.#called.size;
  }
}

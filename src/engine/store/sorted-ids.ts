/**
 * Ids in order, with ranks. A list of short sorted runs: an insertion moves at most one run, so that 100,000 ids
 * cost no more to keep than a few hundred, and ranks are sums over the few hundred runs.
 */

const RUN_MAX = 1024;

export class SortedIds {
  readonly #runs: string[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** `id` must not be there yet. */
  add(id: string): void {
    this.#size++;
    const at = Math.min(this.#runOf(id), this.#runs.length - 1);
    const run = this.#runs[at];
    if (!run) {
      this.#runs.push([id]);
      return;
    }
    run.splice(lowerBound(run, id), 0, id);
    if (run.length > RUN_MAX) this.#runs.splice(at + 1, 0, run.splice(RUN_MAX / 2));
  }

  /** Does nothing when `id` is not there. */
  remove(id: string): void {
    const at = this.#runOf(id);
    const run = this.#runs[at];
    if (!run) return;
    const index = lowerBound(run, id);
    if (run[index] !== id) return;
    this.#size--;
    run.splice(index, 1);
    if (run.length === 0) this.#runs.splice(at, 1);
  }

  /** How many ids stand before `id`, whether it is there or not. */
  rank(id: string): number {
    const at = this.#runOf(id);
    let rank = 0;
    for (let i = 0; i < at; i++) rank += this.#runs[i]!.length;
    const run = this.#runs[at];
    return run ? rank + lowerBound(run, id) : rank;
  }

  /** The ids with ranks from `start` up to, not including, `end`. */
  slice(start: number, end: number): string[] {
    const ids: string[] = [];
    let first = 0;
    for (const run of this.#runs) {
      if (first >= end) break;
      const last = Math.min(run.length, end - first);
      for (let i = Math.max(0, start - first); i < last; i++) ids.push(run[i]!);
      first += run.length;
    }
    return ids;
  }

  /** Index of the first run that ends at or after `id`; the number of runs when there is none. */
  #runOf(id: string): number {
    let low = 0;
    let high = this.#runs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const run = this.#runs[middle]!;
      if (run[run.length - 1]! < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function lowerBound(run: readonly string[], id: string): number {
  let low = 0;
  let high = run.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (run[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A sorted set of ids with ranks, as a list of short sorted runs. An insertion moves at most one run, so 100,000 ids
 * cost little more than a few hundred. A rank is a sum over a few hundred runs.
 */

const RUN_MAX = 1024;

export class SortedIds {
  readonly #runs: string[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds `id`, which must not be in the set. */
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

  /** Removes `id`. Does nothing if it is not in the set. */
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

  /** Returns how many ids sort before `id`, which need not be in the set. */
  rank(id: string): number {
    const at = this.#runOf(id);
    let rank = 0;
    for (let i = 0; i < at; i++) rank += this.#runs[i]!.length;
    const run = this.#runs[at];
    return run ? rank + lowerBound(run, id) : rank;
  }

  /** Returns the ids with ranks from `start` up to, but not including, `end`. */
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

  /** Returns the index of the first run that ends at or after `id`, or the number of runs if there is none. */
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

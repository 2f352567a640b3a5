/**
 * The current entries of one collection, by id and in id order. Can also list a past state, given the changes to undo.
 * Keeps no history of its own.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { SortedIds } from '#engine/store/sorted-ids.ts';
import type { Entry, ListRange } from '#engine/store/store.ts';

/** The part of a range that is returned: `entries` up to the limit, and the number of entries after it. */
interface Page {
  readonly entries: Entry[];
  readonly remaining: number;
}

/** The past entries of changed ids; undefined for an id that did not exist. */
export type Undo = ReadonlyMap<string, Entry | undefined>;

export class Collection {
  readonly #entries = new Map<string, Entry>();
  readonly #ids = new SortedIds();

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /** Returns the replaced entry. */
  set(entry: Entry): Entry | undefined {
    const previous = this.#entries.get(entry.id);
    if (!previous) this.#ids.add(entry.id);
    this.#entries.set(entry.id, entry);
    return previous;
  }

  /** Returns the removed entry. */
  remove(id: string): Entry | undefined {
    const previous = this.#entries.get(id);
    if (!previous) return undefined;
    this.#entries.delete(id);
    this.#ids.remove(id);
    return previous;
  }

  list(range: ListRange): Page {
    const { start, end } = this.#ranks(bounds(range));
    const taken = Math.min(end - start, range.limit ?? Infinity);
    const entries = this.#ids.slice(start, start + taken).map((id) => this.#entries.get(id)!);
    return { entries, remaining: end - start - taken };
  }

  /**
   * Lists the collection as it was before the changes in `undo`. The cost is the number of changes plus the size of the
   * page.
   */
  listBefore(undo: Undo, range: ListRange): Page {
    const within = bounds(range);
    const { start, end } = this.#ranks(within);
    const changed = [...undo.keys()].filter((id) => contains(within, id)).sort(compareText);
    let total = end - start;
    for (const id of changed) total += Number(undo.get(id) !== undefined) - Number(this.#entries.has(id));

    const wanted = Math.min(total, range.limit ?? Infinity);
    const entries: Entry[] = [];
    let next = 0;
    // Each changed id hides at most one current id, so this many current ids are enough for the page.
    for (const id of this.#ids.slice(start, Math.min(end, start + wanted + changed.length))) {
      while (next < changed.length && changed[next]! < id) pushDefined(entries, undo.get(changed[next++]!));
      if (!undo.has(id)) entries.push(this.#entries.get(id)!);
    }
    while (next < changed.length) pushDefined(entries, undo.get(changed[next++]!));
    entries.length = wanted;
    return { entries, remaining: total - wanted };
  }

  #ranks({ from, to }: Bounds): { start: number; end: number } {
    const start = from === '' ? 0 : this.#ids.rank(from);
    const end = to === undefined ? this.#ids.size : this.#ids.rank(to);
    return { start, end: Math.max(start, end) };
  }
}

/** The ids from `from` up to, but not including, `to`. */
interface Bounds {
  readonly from: string;
  readonly to: string | undefined;
}

function bounds({ prefix = '', after }: ListRange): Bounds {
  // No id sorts between x and x followed by the smallest character.
  const afterBound = after === undefined ? '' : `${after}\0`;
  return { from: afterBound > prefix ? afterBound : prefix, to: endOfPrefix(prefix) };
}

function contains({ from, to }: Bounds, id: string): boolean {
  return id >= from && (to === undefined || id < to);
}

/** Returns the smallest string after all strings that start with `prefix`, or undefined if there is none. */
function endOfPrefix(prefix: string): string | undefined {
  for (let last = prefix.length - 1; last >= 0; last--) {
    const code = prefix.charCodeAt(last);
    if (code < 0xffff) return prefix.slice(0, last) + String.fromCharCode(code + 1);
  }
  return undefined;
}

function pushDefined(entries: Entry[], entry: Entry | undefined): void {
  if (entry) entries.push(entry);
}

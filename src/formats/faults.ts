/** Faults and notes of a file: all of them are gathered, and told at once. */

const MAX_TOLD = 50;
const MAX_TEXT = 200;

/** A file that cannot be used; refused whole. `doing`: read OVF. */
export class FormatError extends Error {
  override name = 'FormatError';
  readonly faults: readonly string[];

  constructor(doing: string, faults: readonly string[], options?: ErrorOptions) {
    super(`Cannot ${doing}: ${bounded(faults).join('; ')}`, options);
    this.faults = bounded(faults);
  }
}

/** What a reader collects on its way. */
export class Findings {
  readonly #faults = new Set<string>();
  readonly #notes = new Set<string>();

  get notes(): string[] {
    return bounded([...this.#notes]);
  }

  fault(text: string): void {
    this.#faults.add(text);
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  /** Throws where there is a fault. */
  settle(doing: string): void {
    if (this.#faults.size > 0) throw new FormatError(doing, [...this.#faults]);
  }
}

/** Those that are there more than once, each once. */
export function repeated(values: readonly string[]): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const value of values) (seen.has(value) ? twice : seen).add(value);
  return [...twice];
}

/** A long list is cut, and says so. */
export function bounded(texts: readonly string[]): string[] {
  if (texts.length <= MAX_TOLD) return [...texts];
  return [...texts.slice(0, MAX_TOLD), `and ${texts.length - MAX_TOLD} more`];
}

/** A value of a file in a message: in quotes, of bounded length, without what a terminal would obey. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text);
}

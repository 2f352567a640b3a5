/** Collects the errors and notes of a reader, which are reported at once. */

const MAX_ENTRIES = 50;

/** Thrown for a file that cannot be used; nothing of it is imported. `action` completes the message: `read OVF`. */
export class FileFormatError extends Error {
  override name = 'FileFormatError';
  readonly errors: readonly string[];

  constructor(action: string, faults: readonly string[], options?: ErrorOptions) {
    super(`Cannot ${action}: ${limitList(faults).join('; ')}`, options);
    this.errors = limitList(faults);
  }
}

/** The errors and notes that a reader has found so far. Each text is kept once. */
export class Findings {
  readonly #errors = new Set<string>();
  readonly #notes = new Set<string>();

  get notes(): string[] {
    return limitList([...this.#notes]);
  }

  addError(text: string): void {
    this.#errors.add(text);
  }

  addNote(text: string): void {
    this.#notes.add(text);
  }

  throwIfErrors(action: string): void {
    if (this.#errors.size > 0) throw new FileFormatError(action, [...this.#errors]);
  }
}

/** Returns each value that appears more than once. */
export function findDuplicates(values: readonly string[]): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const value of values) (seen.has(value) ? twice : seen).add(value);
  return [...twice];
}

/** Cuts a long list and appends the number of omitted texts. */
export function limitList(texts: readonly string[]): string[] {
  if (texts.length <= MAX_ENTRIES) return [...texts];
  return [...texts.slice(0, MAX_ENTRIES), `and ${texts.length - MAX_ENTRIES} more`];
}

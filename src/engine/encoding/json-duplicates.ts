/**
 * Finds duplicate fields in a JSON text. JSON.parse silently takes the last one; Kubernetes warns, or rejects under
 * `fieldValidation=Strict`. Every write is checked, so a negative result must be fast: the keys of the text are counted
 * and compared with the parsed fields. Only on a mismatch the text is scanned to find the paths.
 */

/** Kubernetes' limit for reported fields. */
const MAX_FOUND = 100;

/**
 * Reports whether the text may have more fields than were `parsed`. A false positive only costs a scan. A quote before
 * a colon ends a key unless it is escaped; then it is within a string.
 */
export function mayHaveDuplicates(bytes: Buffer, parsed: number): boolean {
  let count = 0;
  const { length } = bytes;
  for (let at = 1; at < length; at++) {
    if (bytes[at] !== COLON) continue;
    let before = at - 1;
    if (bytes[before] !== QUOTE) {
      while (isSpace(bytes[before])) before--;
      if (bytes[before] !== QUOTE) continue;
    }
    let unescaped = before;
    while (bytes[unescaped - 1] === BACKSLASH) unescaped--;
    if ((before - unescaped) % 2 === 0) count++;
  }
  return count !== parsed;
}

interface FieldProblem {
  readonly problem: 'duplicate' | 'unknown';
  readonly path: string;
}

/**
 * Returns the duplicate fields of a valid JSON text in document order, together with the unknown fields of the kind.
 * Skips the contents of unknown fields, which Go's decoder ignores.
 */
export function findDuplicateFields(text: string, unknown: ReadonlySet<string> = new Set()): FieldProblem[] {
  const scanner = new Scanner(text, unknown);
  scanner.value('');
  return [...scanner.found.values()].slice(0, MAX_FOUND);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

const isSpace = (code: number | undefined) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

class Scanner {
  readonly found = new Map<string, FieldProblem>();
  readonly #text: string;
  readonly #unknown: ReadonlySet<string>;
  #at = 0;
  /** Nesting depth within unknown fields. */
  #ignored = 0;

  constructor(text: string, unknown: ReadonlySet<string>) {
    this.#text = text;
    this.#unknown = unknown;
  }

  value(path: string): void {
    switch (this.#next()) {
      case OPEN:
        return this.#object(path);
      case OPEN_LIST:
        return this.#list(path);
      case QUOTE:
        this.#string();
        return;
      default:
        while (/[^\s,\]}]/.test(this.#text[this.#at] ?? ' ')) this.#at++;
    }
  }

  #object(path: string): void {
    const keys = new Set<string>();
    this.#at++;
    while (this.#next() !== CLOSE) {
      if (this.#next() === COMMA) this.#at++;
      this.#next();
      const key = this.#string();
      const field = path === '' ? key : `${path}.${key}`;
      const isUnknown = this.#unknown.has(field);
      if (isUnknown) this.#record('unknown', field);
      else if (keys.has(key)) this.#record('duplicate', field);
      keys.add(key);
      this.#next();
      this.#at++;
      if (isUnknown) this.#ignored++;
      this.value(field);
      if (isUnknown) this.#ignored--;
    }
    this.#at++;
  }

  #list(path: string): void {
    this.#at++;
    for (let index = 0; this.#next() !== CLOSE_LIST; index++) {
      if (this.#next() === COMMA) this.#at++;
      this.value(`${path}[${index}]`);
    }
    this.#at++;
  }

  #record(problem: FieldProblem['problem'], path: string): void {
    if (this.#ignored === 0 && this.found.size < MAX_FOUND) this.found.set(`${problem} ${path}`, { problem, path });
  }

  #string(): string {
    const start = this.#at++;
    let escaped = false;
    for (; this.#text.charCodeAt(this.#at) !== QUOTE; this.#at++) {
      if (this.#text.charCodeAt(this.#at) !== BACKSLASH) continue;
      escaped = true;
      this.#at++;
    }
    const raw = this.#text.slice(start, ++this.#at);
    return escaped ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  }

  /** Skips white space and returns the next character. */
  #next(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (!isSpace(code)) return code;
      this.#at++;
    }
  }
}

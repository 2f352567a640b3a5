/**
 * Returns the message of Go's encoding/json about invalid JSON. kube-apiserver includes it in its responses, and the
 * messages of JSON.parse differ. Only used for texts that JSON.parse has refused, so it need not be fast.
 */

/** Returns the message, or undefined if Go accepts the text. */
export function findGoJsonError(bytes: Uint8Array): string | undefined {
  try {
    new Scanner(bytes).check();
    return undefined;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message;
    throw error;
  }
}

class JsonSyntaxError extends Error {}

const END = 'unexpected end of JSON input';

/** The deepest nesting that Go accepts. Also bounds our own memory. */
const MAX_DEPTH = 10_000;

const isSpace = (c: number) => c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d;
const isDigit = (c: number) => c >= 0x30 && c <= 0x39;
const isHex = (c: number) => isDigit(c) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66);
const code = (char: string) => char.charCodeAt(0);

class Scanner {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Checks the whole text. Keeps open objects and arrays in a list instead of recursing. */
  check(): void {
    const open: ('object' | 'array')[] = [];
    do {
      if (open.length >= MAX_DEPTH) throw new JsonSyntaxError('exceeded max depth');
      const opened = this.#readValue();
      if (opened !== undefined) open.push(opened);
      else this.#closeEnded(open);
    } while (open.length > 0);
    this.#skipSpace();
    if (this.#at < this.#bytes.length) throw this.#unexpected('after top-level value');
  }

  /**
   * Reads a scalar, or an empty object or array. Of any other object or array it reads the beginning, up to its first
   * value, and returns its type.
   */
  #readValue(): 'object' | 'array' | undefined {
    this.#skipSpace();
    const c = this.#peek();
    if (c === code('{')) {
      this.#at++;
      this.#skipSpace();
      if (this.#skip('}')) return undefined;
      this.#readKey();
      return 'object';
    }
    if (c === code('[')) {
      this.#at++;
      this.#skipSpace();
      return this.#skip(']') ? undefined : 'array';
    }
    if (c === code('"')) this.#readString();
    else if (c === code('-') || isDigit(c)) this.#readNumber();
    else if (c === code('t')) this.#readWord('true');
    else if (c === code('f')) this.#readWord('false');
    else if (c === code('n')) this.#readWord('null');
    else throw this.#unexpected('looking for beginning of value');
    return undefined;
  }

  /** Closes the objects and arrays that end after a value, until another value must follow. */
  #closeEnded(open: ('object' | 'array')[]): void {
    while (open.length > 0) {
      this.#skipSpace();
      const inObject = open.at(-1) === 'object';
      if (this.#skip(',')) {
        this.#skipSpace();
        if (inObject) this.#readKey();
        return;
      }
      const where = inObject ? 'after object key:value pair' : 'after array element';
      if (!this.#skip(inObject ? '}' : ']')) throw this.#unexpected(where);
      open.pop();
    }
  }

  #readKey(): void {
    if (this.#peek() !== code('"')) throw this.#unexpected('looking for beginning of object key string');
    this.#readString();
    this.#skipSpace();
    if (!this.#skip(':')) throw this.#unexpected('after object key');
  }

  #readString(): void {
    this.#at++;
    for (;;) {
      const c = this.#peek();
      if (c < 0x20) throw this.#unexpected('in string literal');
      this.#at++;
      if (c === code('"')) return;
      if (c === code('\\')) this.#readEscape();
    }
  }

  #readEscape(): void {
    if (this.#skip('u')) {
      for (let i = 0; i < 4; i++) this.#expect(isHex, 'in \\u hexadecimal character escape');
    } else this.#expect((c) => '"\\/bfnrt'.includes(String.fromCharCode(c)), 'in string escape code');
  }

  #readNumber(): void {
    this.#skip('-');
    if (!this.#skip('0')) this.#readDigits('in numeric literal');
    if (this.#skip('.')) this.#readDigits('after decimal point in numeric literal');
    if (this.#skip('e') || this.#skip('E')) {
      if (!this.#skip('+')) this.#skip('-');
      this.#readDigits('in exponent of numeric literal');
    }
  }

  #readDigits(where: string): void {
    this.#expect(isDigit, where);
    while (this.#at < this.#bytes.length && isDigit(this.#bytes[this.#at]!)) this.#at++;
  }

  #readWord(word: string): void {
    for (const [i, char] of [...word].entries()) {
      const expected = code(char);
      this.#expect((c) => c === expected, i === 0 ? '' : `in literal ${word} (expecting '${char}')`);
    }
  }

  #expect(accepts: (c: number) => boolean, where: string): void {
    if (!accepts(this.#peek())) throw this.#unexpected(where);
    this.#at++;
  }

  #skip(char: string): boolean {
    if (this.#bytes[this.#at] !== code(char)) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    while (this.#at < this.#bytes.length && isSpace(this.#bytes[this.#at]!)) this.#at++;
  }

  #peek(): number {
    const c = this.#bytes[this.#at];
    if (c === undefined) throw new JsonSyntaxError(END);
    return c;
  }

  #unexpected(where: string): JsonSyntaxError {
    return new JsonSyntaxError(`invalid character ${quoteByte(this.#peek())} ${where}`);
  }
}

/**
 * Quotes a byte as Go does. Go treats bytes as characters here, so only the first byte of a UTF-8 sequence is shown.
 */
function quoteByte(c: number): string {
  const known = SHORT.get(c);
  if (known !== undefined) return `'${known}'`;
  if (c === 0xad || c < 0x20 || (c >= 0x7f && c <= 0xa0)) return `'${hex(c)}'`;
  return `'${String.fromCharCode(c)}'`;
}

const hex = (c: number) =>
  c < 0x80 ? `\\x${c.toString(16).padStart(2, '0')}` : `\\u${c.toString(16).padStart(4, '0')}`;

const SHORT: ReadonlyMap<number, string> = new Map([
  [0x07, '\\a'],
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0b, '\\v'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x27, "\\'"],
  [0x5c, '\\\\'],
]);

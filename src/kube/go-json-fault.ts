/**
 * What Go's encoding/json says about a text that is no JSON: kube-apiserver puts these words into its answers, and
 * JSON.parse has others. Only for texts that were refused already, so that it need not be fast.
 */

/** undefined = Go would take it. */
export function goJsonFault(bytes: Uint8Array): string | undefined {
  try {
    new Scanner(bytes).document();
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

class Fault extends Error {}

const END = 'unexpected end of JSON input';

/** The deepest nesting that Go takes; it also keeps our own stack small. */
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

  /** What is open is kept in a list, not on the stack. */
  document(): void {
    const open: ('object' | 'array')[] = [];
    do {
      if (open.length >= MAX_DEPTH) throw new Fault('exceeded max depth');
      const begun = this.#value();
      if (begun !== undefined) open.push(begun);
      else this.#close(open);
    } while (open.length > 0);
    this.#space();
    if (this.#at < this.#bytes.length) throw this.#unexpected('after top-level value');
  }

  /** Reads a scalar or an empty object or list; a fuller one is begun, up to where its first value must come. */
  #value(): 'object' | 'array' | undefined {
    this.#space();
    const c = this.#peek();
    if (c === code('{')) {
      this.#at++;
      this.#space();
      if (this.#skip('}')) return undefined;
      this.#key();
      return 'object';
    }
    if (c === code('[')) {
      this.#at++;
      this.#space();
      return this.#skip(']') ? undefined : 'array';
    }
    if (c === code('"')) this.#string();
    else if (c === code('-') || isDigit(c)) this.#number();
    else if (c === code('t')) this.#word('true');
    else if (c === code('f')) this.#word('false');
    else if (c === code('n')) this.#word('null');
    else throw this.#unexpected('looking for beginning of value');
    return undefined;
  }

  /** After a value: ends what ends here, until another value must come. */
  #close(open: ('object' | 'array')[]): void {
    while (open.length > 0) {
      this.#space();
      const inObject = open.at(-1) === 'object';
      if (this.#skip(',')) {
        this.#space();
        if (inObject) this.#key();
        return;
      }
      const where = inObject ? 'after object key:value pair' : 'after array element';
      if (!this.#skip(inObject ? '}' : ']')) throw this.#unexpected(where);
      open.pop();
    }
  }

  #key(): void {
    if (this.#peek() !== code('"')) throw this.#unexpected('looking for beginning of object key string');
    this.#string();
    this.#space();
    if (!this.#skip(':')) throw this.#unexpected('after object key');
  }

  #string(): void {
    this.#at++;
    for (;;) {
      const c = this.#peek();
      if (c < 0x20) throw this.#unexpected('in string literal');
      this.#at++;
      if (c === code('"')) return;
      if (c === code('\\')) this.#escape();
    }
  }

  #escape(): void {
    if (this.#skip('u')) {
      for (let i = 0; i < 4; i++) this.#take(isHex, 'in \\u hexadecimal character escape');
    } else this.#take((c) => '"\\/bfnrt'.includes(String.fromCharCode(c)), 'in string escape code');
  }

  #number(): void {
    this.#skip('-');
    if (!this.#skip('0')) this.#digits('in numeric literal');
    if (this.#skip('.')) this.#digits('after decimal point in numeric literal');
    if (this.#skip('e') || this.#skip('E')) {
      if (!this.#skip('+')) this.#skip('-');
      this.#digits('in exponent of numeric literal');
    }
  }

  #digits(where: string): void {
    this.#take(isDigit, where);
    while (this.#at < this.#bytes.length && isDigit(this.#bytes[this.#at]!)) this.#at++;
  }

  #word(word: string): void {
    for (const [i, char] of [...word].entries()) {
      const wanted = code(char);
      this.#take((c) => c === wanted, i === 0 ? '' : `in literal ${word} (expecting '${char}')`);
    }
  }

  #take(fits: (c: number) => boolean, where: string): void {
    if (!fits(this.#peek())) throw this.#unexpected(where);
    this.#at++;
  }

  #skip(char: string): boolean {
    if (this.#bytes[this.#at] !== code(char)) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    while (this.#at < this.#bytes.length && isSpace(this.#bytes[this.#at]!)) this.#at++;
  }

  #peek(): number {
    const c = this.#bytes[this.#at];
    if (c === undefined) throw new Fault(END);
    return c;
  }

  #unexpected(where: string): Fault {
    return new Fault(`invalid character ${quoted(this.#peek())} ${where}`);
  }
}

/** A byte as Go quotes it: it takes bytes for characters here, so that UTF-8 shows its first byte only. */
function quoted(c: number): string {
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

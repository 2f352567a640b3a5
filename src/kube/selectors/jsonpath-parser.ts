/** Parses the part of client-go's JSONPath dialect that printer columns may use into a list of steps. */

export type JsonPathStep =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'recursive' }
  | { readonly kind: 'slice'; readonly from: number; readonly to: number | undefined; readonly step: number }
  | { readonly kind: 'union'; readonly branches: readonly (readonly JsonPathStep[])[] }
  | JsonPathFilter;

export interface JsonPathFilter {
  readonly kind: 'filter';
  readonly left: Operand;
  readonly comparison: Comparison | 'exists';
  readonly right: Operand;
}

export type Operand = { readonly literal: string | number | boolean } | { readonly path: readonly JsonPathStep[] };
export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

const MAX_LENGTH = 4096;
const MAX_NESTING = 16;
const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);

/** Matches the characters that end a field name unless they are escaped. */
const TERMINATOR = /[ \t\r\n.,[\]$@{}]/;

class JsonPathError extends Error {
  override name = 'JsonPathError';
}

export function parseJsonPath(path: string): readonly JsonPathStep[] {
  if (path.length > MAX_LENGTH) throw new JsonPathError(`JSONPath is longer than ${MAX_LENGTH} characters`);
  const text = path.trim();
  const isBraced = text.startsWith('{') && text.endsWith('}');
  const inner = (isBraced ? text.slice(1, -1) : text).trim();
  if (inner === '') throw syntaxError(path, 'it is empty');
  return new Parser(inner, path, 0).parse();
}

const syntaxError = (path: string, problem: string) =>
  new JsonPathError(`Cannot parse JSONPath ${JSON.stringify(path)}: ${problem}`);

class Parser {
  readonly #text: string;
  /** The complete path, for error messages. */
  readonly #whole: string;
  readonly #nesting: number;
  #at = 0;

  constructor(text: string, whole: string, nesting: number) {
    this.#text = text;
    this.#whole = whole;
    this.#nesting = nesting;
    if (nesting > MAX_NESTING) throw this.#error('it is nested too deep');
  }

  parse(): readonly JsonPathStep[] {
    if (this.#text[0] === '$' || this.#text[0] === '@') this.#at++;
    if (this.#text.slice(this.#at) === '.') return [];
    const steps: JsonPathStep[] = [];
    while (this.#at < this.#text.length) {
      if (this.#text.startsWith('..', this.#at)) this.#parseRecursive(steps);
      else if (this.#text.startsWith('[?(', this.#at)) steps.push(this.#parseFilter());
      else if (this.#text[this.#at] === '[') steps.push(...this.#parseBrackets());
      else if (this.#text[this.#at] === '.') {
        this.#at++;
        steps.push(this.#parseField());
      } else throw this.#unexpected();
    }
    return steps;
  }

  #parseRecursive(steps: JsonPathStep[]): void {
    if (steps.at(-1)?.kind === 'recursive') throw this.#error('invalid multiple recursive descent');
    this.#at += 2;
    steps.push({ kind: 'recursive' });
    const next = this.#text[this.#at];
    if (next !== undefined && next !== '[' && next !== '.') steps.push(this.#parseField());
  }

  #parseField(): JsonPathStep {
    const start = this.#at;
    while (this.#at < this.#text.length && !TERMINATOR.test(this.#text[this.#at] as string)) {
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    }
    const name = this.#text.slice(start, this.#at).replaceAll('\\', '');
    if (name === '') throw this.#error(`a field name is missing at position ${start}`);
    return name === '*' ? { kind: 'wildcard' } : { kind: 'field', name };
  }

  /** Parses `[0]`, `[-1]`, `[*]`, `[1:3]`, `['a']`, or several of these separated by commas. */
  #parseBrackets(): readonly JsonPathStep[] {
    const end = this.#text.indexOf(']', this.#at);
    if (end < 0) throw this.#error('unterminated array');
    const content = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    const branches = content.split(',').map((part) => this.#parseSubscript(part.trim()));
    return branches.length === 1 ? (branches[0] as readonly JsonPathStep[]) : [{ kind: 'union', branches }];
  }

  #parseSubscript(text: string): readonly JsonPathStep[] {
    if (text.length > 2 && text.startsWith("'") && text.endsWith("'")) {
      return this.#parseNested(`.${text.slice(1, -1)}`);
    }
    if (text === '*') return [{ kind: 'slice', from: 0, to: undefined, step: 1 }];
    const parts = /^(-?[0-9]{0,9})(?::(-?[0-9]{0,9}))?(?::([0-9]{0,9}))?$/.exec(text);
    const [, from = '', to, step] = parts ?? [];
    if (parts === null || text === '' || from === '-' || to === '-') throw this.#error(`invalid array index ${text}`);
    const first = Number(from);
    // A single index is a slice of one element; `[-1]` ends at the end of the array.
    if (to === undefined) return [{ kind: 'slice', from: first, to: first === -1 ? undefined : first + 1, step: 1 }];
    const stride = step === undefined || step === '' ? 1 : Number(step);
    if (stride === 0) throw this.#error('step must be > 0');
    return [{ kind: 'slice', from: first, to: to === '' ? undefined : Number(to), step: stride }];
  }

  /** Parses `[?(@.type=="Ready")]`, or `[?(@.type)]`, which checks for existence. */
  #parseFilter(): JsonPathStep {
    const start = this.#at + 3;
    const end = this.#findFilterEnd(start);
    if (this.#text[end + 1] !== ']') throw this.#error('unclosed array expect ]');
    this.#at = end + 2;
    const text = this.#text.slice(start, end);
    const parts = /^([^!<>=]+)([!<>=]+)(.+)$/s.exec(text);
    if (parts === null) {
      return { kind: 'filter', left: this.#parseOperand(text), comparison: 'exists', right: { literal: '' } };
    }
    const [, left = '', comparison = '', right = ''] = parts;
    if (!COMPARISONS.has(comparison)) throw this.#error(`unrecognized filter operator ${comparison}`);
    return {
      kind: 'filter',
      left: this.#parseOperand(left),
      comparison: comparison as Comparison,
      right: this.#parseOperand(right),
    };
  }

  /** Returns the position of the closing parenthesis, ignoring those inside quotes. */
  #findFilterEnd(start: number): number {
    let quote = '';
    for (let i = start; i < this.#text.length; i++) {
      const char = this.#text[i] as string;
      if (quote !== '' && char === '\\') i++;
      else if (char === quote) quote = '';
      else if (quote === '' && (char === '"' || char === "'")) quote = char;
      else if (quote === '' && char === ')') return i;
    }
    throw this.#error('unterminated filter');
  }

  #parseOperand(source: string): Operand {
    const text = source.trim();
    if (/^(["']).*\1$/s.test(text) && text.length >= 2) return { literal: text.slice(1, -1).replace(/\\(.)/gs, '$1') };
    if (/^[+-]?[0-9]+(?:\.[0-9]+)?$/.test(text)) return { literal: Number(text) };
    if (text === 'true' || text === 'false') return { literal: text === 'true' };
    if (text === '') throw this.#error('a filter has an empty side');
    return { path: this.#parseNested(text) };
  }

  #parseNested(text: string): readonly JsonPathStep[] {
    return new Parser(text, this.#whole, this.#nesting + 1).parse();
  }

  #unexpected(): JsonPathError {
    const rest = this.#text.slice(this.#at);
    const identifier = /^[\p{L}\p{N}_]+/u.exec(rest)?.[0];
    if (identifier !== undefined) return this.#error(`unrecognized identifier ${identifier}; a path starts with '.'`);
    return this.#error(`unrecognized character ${JSON.stringify(rest[0])} at position ${this.#at}`);
  }

  #error(problem: string): JsonPathError {
    return syntaxError(this.#whole, problem);
  }
}

/**
 * The recursive-descent parser. Operator precedence is that of cel-go's grammar:
 *
 *   ?:  <  ||  <  &&  <  relations  <  + -  <  * / %  <  ! -  <  . [] ()
 *
 * A macro is expanded as soon as its call is complete. Chains and nesting are limited, so that code that walks the tree
 * can recurse.
 */
import type { CallExpr, Expr, Literal } from '#cel/ast.ts';
import type { Macro } from '#cel/library.ts';
import {
  parseBytesLiteral,
  parseDoubleLiteral,
  parseIntLiteral,
  parseStringLiteral,
  parseUintLiteral,
} from '#cel/parse/literal.ts';
import { MAX_NESTING } from '#cel/parse/limits.ts';
import type { TokenReader } from '#cel/parse/token-reader.ts';
import { EXPRESSION_START } from '#cel/parse/token.ts';
import type { Token, TokenKind } from '#cel/parse/token.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
);
const RELATIONS: readonly TokenKind[] = ['<', '<=', '>=', '>', '==', '!=', 'in'];
const SUMS: readonly TokenKind[] = ['+', '-'];
const PRODUCTS: readonly TokenKind[] = ['*', '/', '%'];
/** The tokens that can follow a complete expression in every context. */
const FOLLOW: readonly TokenKind[] = ['.', '[', '?', '||', '&&', ...RELATIONS, ...SUMS, ...PRODUCTS];

type Entry = { readonly value: Expr; readonly optional: boolean };

export class Parser {
  readonly #reader: TokenReader;
  readonly #macros: ReadonlyMap<string, Macro>;
  /** For each open bracket, the additional tokens that can follow a complete expression inside it. */
  readonly #closers: (readonly TokenKind[])[] = [['<EOF>']];

  constructor(reader: TokenReader, macros: readonly Macro[]) {
    this.#reader = reader;
    // As in cel-go, the last macro with a name takes precedence.
    this.#macros = new Map(macros.map((macro) => [macroKey(macro.name, macro.member, macro.arity), macro]));
  }

  /** Throws ParseAbortError. */
  parseAll(): Expr {
    const tree = this.#expression();
    this.#reader.expect('<EOF>');
    return tree;
  }

  #parseInside<T>(closers: readonly TokenKind[], parse: () => T): T {
    if (this.#closers.length > MAX_NESTING) {
      this.#reader.abort(-1, `expression recursion limit exceeded: ${MAX_NESTING}`);
    }
    this.#closers.push(closers);
    const parsed = parse();
    this.#closers.pop();
    return parsed;
  }

  #close(kind: TokenKind): void {
    this.#reader.expect(kind, [...FOLLOW, ...(this.#closers.at(-1) ?? [])]);
  }

  #countLink(links: number): void {
    if (this.#closers.length + links > MAX_NESTING) this.#reader.abort(-1, 'max recursion depth exceeded');
  }

  #expression(): Expr {
    const condition = this.#logic('||', () => this.#logic('&&', () => this.#relation()));
    const question = this.#reader.takeIf('?');
    if (question === undefined) return condition;
    const yes = this.#parseInside([':'], () => this.#logic('||', () => this.#logic('&&', () => this.#relation())));
    this.#reader.expect(':', EXPRESSION_START);
    const no = this.#parseInside(this.#closers.at(-1) ?? [], () => this.#expression());
    return call(question.at, '_?_:_', [condition, yes, no]);
  }

  /** Builds a balanced tree, so that a thousand terms are ten levels deep. */
  #logic(kind: '||' | '&&', term: () => Expr): Expr {
    const terms = [term()];
    const operators: Token[] = [];
    while (this.#reader.is(kind)) {
      operators.push(this.#reader.take());
      terms.push(term());
    }
    return balance(terms, operators, `_${kind}_`, 0, terms.length);
  }

  #chain(kinds: readonly TokenKind[], operand: () => Expr): Expr {
    let left = operand();
    for (let links = 1; this.#reader.isOneOf(kinds); links += 1) {
      this.#countLink(links);
      const operator = this.#reader.take();
      const name = operator.kind === 'in' ? '@in' : `_${operator.kind}_`;
      left = call(operator.at, name, [left, operand()]);
    }
    return left;
  }

  #relation(): Expr {
    return this.#chain(RELATIONS, () => this.#chain(SUMS, () => this.#chain(PRODUCTS, () => this.#unary())));
  }

  #unary(): Expr {
    const reader = this.#reader;
    reader.expectOneOf(EXPRESSION_START);
    const { kind } = reader.token;
    if (kind !== '!' && kind !== '-') return this.#member();
    const operators: Token[] = [];
    // `-1` is a literal, because the smallest int has no positive counterpart; `-(1)` and `--1` are not.
    while (reader.is(kind) && (operators.length > 0 || !isSign(reader.token, reader.ahead(1)))) {
      operators.push(reader.take());
    }
    const last = operators.at(-1);
    if (kind === '-' && last !== undefined && !reader.isOneOf(EXPRESSION_START)) reader.noViableAlternative(last);
    const operand = this.#member();
    return operators.length % 2 === 0 ? operand : call(operators[0]?.at ?? 0, `${kind}_`, [operand]);
  }

  #member(): Expr {
    const reader = this.#reader;
    let operand = this.#primary();
    for (let links = 1; reader.is('.') || reader.is('['); links += 1) {
      this.#countLink(links);
      operand = reader.is('[') ? this.#index(operand) : this.#selectOrCall(operand);
    }
    return operand;
  }

  #index(operand: Expr): Expr {
    const { at } = this.#reader.take();
    const optional = this.#reader.takeIf('?') !== undefined;
    const index = this.#parseInside([']'], () => this.#expression());
    this.#close(']');
    return call(at, optional ? '_[?_]' : '_[_]', [operand, index]);
  }

  #selectOrCall(operand: Expr): Expr {
    const reader = this.#reader;
    const dot = reader.take();
    const optional = reader.takeIf('?') !== undefined;
    if (!reader.is('IDENTIFIER') && !reader.is('ESC_IDENTIFIER')) {
      // At this point cel-go's parser may still expect a message name.
      if (operand.kind === 'ident' || optional) reader.mismatched(['IDENTIFIER']);
      reader.noViableAlternative(dot);
    }
    const name = reader.take();
    if (optional) {
      const field: Expr = { kind: 'const', at: name.at, value: fieldName(name) };
      return call(dot.at, '_?._', [operand, field]);
    }
    if (name.kind === 'IDENTIFIER' && reader.is('(')) return this.#call(name.text, operand);
    return { kind: 'select', at: dot.at, operand, field: fieldName(name), test: false };
  }

  #call(name: string, target: Expr | undefined): Expr {
    const { at } = this.#reader.take();
    const args: Expr[] = [];
    this.#parseInside([')', ','], () => {
      this.#reader.expectOneOf([...EXPRESSION_START, ')']);
      if (this.#reader.is(')')) return;
      do args.push(this.#expression());
      while (this.#reader.takeIf(',') !== undefined);
    });
    this.#close(')');
    const macro = this.#macros.get(macroKey(name, target !== undefined, args.length));
    return this.#expand(macro, at, target, args) ?? { kind: 'call', at, name, target, args };
  }

  #expand(macro: Macro | undefined, at: number, target: Expr | undefined, args: readonly Expr[]): Expr | undefined {
    try {
      return macro?.expand({ at, target, args });
    } catch (error) {
      if (!(error instanceof CelSyntaxError)) throw error;
      for (const problem of error.problems) this.#reader.report(problem.at, problem.message);
      return placeholder(at);
    }
  }

  #primary(): Expr {
    const reader = this.#reader;
    reader.expectOneOf(EXPRESSION_START);
    switch (reader.token.kind) {
      case '(': {
        reader.take();
        const inner = this.#parseInside([')'], () => this.#expression());
        this.#close(')');
        return inner;
      }
      case '[':
        return this.#list();
      case '{':
        return this.#map();
      case '.':
      case 'IDENTIFIER':
        return this.#name();
      case '-':
      case '!':
        // The sign of a number, or an operator that is invalid here.
        if (!isSign(reader.token, reader.ahead(1))) reader.mismatched(EXPRESSION_START.filter((kind) => kind !== '!'));
        return this.#literal();
      default:
        return this.#literal();
    }
  }

  #name(): Expr {
    const reader = this.#reader;
    const dot = reader.takeIf('.');
    if (!reader.is('IDENTIFIER')) reader.noViableAlternative(dot ?? reader.token);
    const message = this.#messageName();
    if (message !== undefined) return this.#message((dot === undefined ? '' : '.') + message);
    const { at, text } = reader.take();
    if (RESERVED.has(text)) {
      reader.report(dot?.at ?? at, `reserved identifier: ${text}`);
      if (reader.is('(')) this.#call(text, undefined);
      return placeholder(at);
    }
    const name = dot === undefined ? text : `.${text}`;
    return reader.is('(') ? this.#call(name, undefined) : { kind: 'ident', at, name };
  }

  /** Takes and returns a name such as `a.b.C` if `{` follows it. */
  #messageName(): string | undefined {
    const reader = this.#reader;
    let count = 1;
    while (reader.ahead(count).kind === '.' && reader.ahead(count + 1).kind === 'IDENTIFIER') count += 2;
    if (reader.ahead(count).kind !== '{') return undefined;
    let name = '';
    for (let taken = 0; taken < count; taken += 1) name += reader.take().text;
    return name;
  }

  #message(name: string): Expr {
    const reader = this.#reader;
    const { at } = reader.take();
    const entries: { readonly field: string; readonly value: Expr; readonly optional: boolean }[] = [];
    this.#parseInside(['}', ','], () => {
      reader.expectOneOf(['}', ',', '?', 'IDENTIFIER', 'ESC_IDENTIFIER']);
      while (!reader.is('}') && !reader.is(',')) {
        const optional = reader.takeIf('?') !== undefined;
        if (!reader.is('IDENTIFIER') && !reader.is('ESC_IDENTIFIER')) reader.mismatched(['IDENTIFIER']);
        const field = fieldName(reader.take());
        reader.expect(':', EXPRESSION_START);
        entries.push({ field, value: this.#expression(), optional });
        if (reader.takeIf(',') === undefined) break;
      }
      reader.takeIf(',');
    });
    this.#close('}');
    return { kind: 'message', at, name, entries };
  }

  #list(): Expr {
    const { at } = this.#reader.take();
    const elements = this.#elements(']', () => this.#optionalEntry());
    return { kind: 'list', at, elements };
  }

  #map(): Expr {
    const { at } = this.#reader.take();
    const entries = this.#elements('}', () => {
      const { value: key, optional } = this.#optionalEntry();
      this.#reader.expect(':', EXPRESSION_START);
      return { key, value: this.#expression(), optional };
    });
    return { kind: 'map', at, entries };
  }

  /** Accepts a trailing comma. By the grammar, a comma alone is an empty list. */
  #elements<T>(close: ']' | '}', element: () => T): T[] {
    const reader = this.#reader;
    const elements: T[] = [];
    this.#parseInside([close, ','], () => {
      reader.expectOneOf([...EXPRESSION_START, close, ',', '?']);
      while (reader.is('?') || reader.isOneOf(EXPRESSION_START)) {
        elements.push(element());
        if (reader.takeIf(',') === undefined) return;
      }
      if (elements.length === 0) reader.takeIf(',');
    });
    this.#close(close);
    return elements;
  }

  #optionalEntry(): Entry {
    const optional = this.#reader.takeIf('?') !== undefined;
    return { value: this.#expression(), optional };
  }

  #literal(): Expr {
    const reader = this.#reader;
    const { at } = reader.token;
    const negative = reader.takeIf('-') !== undefined;
    const { kind, text } = reader.take();
    const of = (value: Literal | undefined, problem: string): Expr => {
      if (value !== undefined) return { kind: 'const', at, value };
      reader.report(at, problem);
      return placeholder(at);
    };
    if (kind === 'NUM_INT') return of(parseIntLiteral(text, negative), 'invalid int literal');
    if (kind === 'NUM_UINT') return of(parseUintLiteral(text), 'invalid uint literal');
    if (kind === 'NUM_FLOAT') return of(parseDoubleLiteral(text, negative), 'invalid double literal');
    if (kind === 'STRING' || kind === 'BYTES') {
      const read = kind === 'STRING' ? parseStringLiteral(text) : parseBytesLiteral(text);
      return 'problem' in read ? of(undefined, read.problem) : of(read.value, '');
    }
    return of(kind === 'null' ? null : kind === 'true', '');
  }
}

function macroKey(name: string, member: boolean, arity: number): string {
  return `${name}/${arity}${member ? '.' : ''}`;
}

function call(at: number, name: string, args: readonly Expr[]): CallExpr {
  return { kind: 'call', at, name, target: undefined, args };
}

/** Returns a placeholder for a part whose problem was already reported. */
function placeholder(at: number): Expr {
  return { kind: 'const', at, value: null };
}

function isSign(token: Token, next: Token): boolean {
  return token.kind === '-' && (next.kind === 'NUM_INT' || next.kind === 'NUM_FLOAT');
}

function fieldName(token: Token): string {
  return token.kind === 'ESC_IDENTIFIER' ? token.text.slice(1, -1) : token.text;
}

function balance(terms: readonly Expr[], operators: readonly Token[], name: string, from: number, to: number): Expr {
  if (to - from === 1) return terms[from] as Expr;
  const middle = Math.floor((from + to) / 2);
  const left = balance(terms, operators, name, from, middle);
  const right = balance(terms, operators, name, middle, to);
  return call(operators[middle - 1]?.at ?? 0, name, [left, right]);
}

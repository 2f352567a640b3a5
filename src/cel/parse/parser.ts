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
    const tree = this.#parseExpression();
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

  #expectClose(kind: TokenKind): void {
    this.#reader.expect(kind, [...FOLLOW, ...(this.#closers.at(-1) ?? [])]);
  }

  #countLink(links: number): void {
    if (this.#closers.length + links > MAX_NESTING) this.#reader.abort(-1, 'max recursion depth exceeded');
  }

  #parseExpression(): Expr {
    const condition = this.#parseLogic('||', () => this.#parseLogic('&&', () => this.#parseRelation()));
    const question = this.#reader.takeIf('?');
    if (question === undefined) return condition;
    const yes = this.#parseInside([':'], () =>
      this.#parseLogic('||', () => this.#parseLogic('&&', () => this.#parseRelation())),
    );
    this.#reader.expect(':', EXPRESSION_START);
    const no = this.#parseInside(this.#closers.at(-1) ?? [], () => this.#parseExpression());
    return call(question.at, '_?_:_', [condition, yes, no]);
  }

  /** Builds a balanced tree, so that a thousand terms are ten levels deep. */
  #parseLogic(kind: '||' | '&&', term: () => Expr): Expr {
    const terms = [term()];
    const operators: Token[] = [];
    while (this.#reader.is(kind)) {
      operators.push(this.#reader.take());
      terms.push(term());
    }
    return balanceTerms(terms, operators, `_${kind}_`, 0, terms.length);
  }

  #parseChain(kinds: readonly TokenKind[], operand: () => Expr): Expr {
    let left = operand();
    for (let links = 1; this.#reader.isOneOf(kinds); links += 1) {
      this.#countLink(links);
      const operator = this.#reader.take();
      const name = operator.kind === 'in' ? '@in' : `_${operator.kind}_`;
      left = call(operator.at, name, [left, operand()]);
    }
    return left;
  }

  #parseRelation(): Expr {
    return this.#parseChain(RELATIONS, () =>
      this.#parseChain(SUMS, () => this.#parseChain(PRODUCTS, () => this.#parseUnary())),
    );
  }

  #parseUnary(): Expr {
    const reader = this.#reader;
    reader.expectOneOf(EXPRESSION_START);
    const { kind } = reader.token;
    if (kind !== '!' && kind !== '-') return this.#parseMember();
    const operators: Token[] = [];
    // `-1` is a literal, because the smallest int has no positive counterpart; `-(1)` and `--1` are not.
    while (reader.is(kind) && (operators.length > 0 || !isSign(reader.token, reader.peek(1)))) {
      operators.push(reader.take());
    }
    const last = operators.at(-1);
    if (kind === '-' && last !== undefined && !reader.isOneOf(EXPRESSION_START)) reader.abortNoViableAlternative(last);
    const operand = this.#parseMember();
    return operators.length % 2 === 0 ? operand : call(operators[0]?.at ?? 0, `${kind}_`, [operand]);
  }

  #parseMember(): Expr {
    const reader = this.#reader;
    let operand = this.#parsePrimary();
    for (let links = 1; reader.is('.') || reader.is('['); links += 1) {
      this.#countLink(links);
      operand = reader.is('[') ? this.#parseIndex(operand) : this.#parseSelectOrCall(operand);
    }
    return operand;
  }

  #parseIndex(operand: Expr): Expr {
    const { at } = this.#reader.take();
    const optional = this.#reader.takeIf('?') !== undefined;
    const index = this.#parseInside([']'], () => this.#parseExpression());
    this.#expectClose(']');
    return call(at, optional ? '_[?_]' : '_[_]', [operand, index]);
  }

  #parseSelectOrCall(operand: Expr): Expr {
    const reader = this.#reader;
    const dot = reader.take();
    const optional = reader.takeIf('?') !== undefined;
    if (!reader.is('IDENTIFIER') && !reader.is('ESC_IDENTIFIER')) {
      // At this point cel-go's parser may still expect a message name.
      if (operand.kind === 'ident' || optional) reader.abortMismatched(['IDENTIFIER']);
      reader.abortNoViableAlternative(dot);
    }
    const name = reader.take();
    if (optional) {
      const field: Expr = { kind: 'const', at: name.at, value: fieldName(name) };
      return call(dot.at, '_?._', [operand, field]);
    }
    if (name.kind === 'IDENTIFIER' && reader.is('(')) return this.#parseCall(name.text, operand);
    return { kind: 'select', at: dot.at, operand, field: fieldName(name), test: false };
  }

  #parseCall(name: string, target: Expr | undefined): Expr {
    const { at } = this.#reader.take();
    const args: Expr[] = [];
    this.#parseInside([')', ','], () => {
      this.#reader.expectOneOf([...EXPRESSION_START, ')']);
      if (this.#reader.is(')')) return;
      do args.push(this.#parseExpression());
      while (this.#reader.takeIf(',') !== undefined);
    });
    this.#expectClose(')');
    const macro = this.#macros.get(macroKey(name, target !== undefined, args.length));
    return this.#expandMacro(macro, at, target, args) ?? { kind: 'call', at, name, target, args };
  }

  #expandMacro(
    macro: Macro | undefined,
    at: number,
    target: Expr | undefined,
    args: readonly Expr[],
  ): Expr | undefined {
    try {
      return macro?.expand({ at, target, args });
    } catch (error) {
      if (!(error instanceof CelSyntaxError)) throw error;
      for (const problem of error.problems) this.#reader.report(problem.at, problem.message);
      return placeholder(at);
    }
  }

  #parsePrimary(): Expr {
    const reader = this.#reader;
    reader.expectOneOf(EXPRESSION_START);
    switch (reader.token.kind) {
      case '(': {
        reader.take();
        const inner = this.#parseInside([')'], () => this.#parseExpression());
        this.#expectClose(')');
        return inner;
      }
      case '[':
        return this.#parseList();
      case '{':
        return this.#parseMap();
      case '.':
      case 'IDENTIFIER':
        return this.#parseName();
      case '-':
      case '!':
        // The sign of a number, or an operator that is invalid here.
        if (!isSign(reader.token, reader.peek(1)))
          reader.abortMismatched(EXPRESSION_START.filter((kind) => kind !== '!'));
        return this.#parseLiteral();
      default:
        return this.#parseLiteral();
    }
  }

  #parseName(): Expr {
    const reader = this.#reader;
    const dot = reader.takeIf('.');
    if (!reader.is('IDENTIFIER')) reader.abortNoViableAlternative(dot ?? reader.token);
    const message = this.#takeMessageName();
    if (message !== undefined) return this.#parseMessage((dot === undefined ? '' : '.') + message);
    const { at, text } = reader.take();
    if (RESERVED.has(text)) {
      reader.report(dot?.at ?? at, `reserved identifier: ${text}`);
      if (reader.is('(')) this.#parseCall(text, undefined);
      return placeholder(at);
    }
    const name = dot === undefined ? text : `.${text}`;
    return reader.is('(') ? this.#parseCall(name, undefined) : { kind: 'ident', at, name };
  }

  /** Takes and returns a name such as `a.b.C` if `{` follows it. */
  #takeMessageName(): string | undefined {
    const reader = this.#reader;
    let count = 1;
    while (reader.peek(count).kind === '.' && reader.peek(count + 1).kind === 'IDENTIFIER') count += 2;
    if (reader.peek(count).kind !== '{') return undefined;
    let name = '';
    for (let taken = 0; taken < count; taken += 1) name += reader.take().text;
    return name;
  }

  #parseMessage(name: string): Expr {
    const reader = this.#reader;
    const { at } = reader.take();
    const entries: { readonly field: string; readonly value: Expr; readonly optional: boolean }[] = [];
    this.#parseInside(['}', ','], () => {
      reader.expectOneOf(['}', ',', '?', 'IDENTIFIER', 'ESC_IDENTIFIER']);
      while (!reader.is('}') && !reader.is(',')) {
        const optional = reader.takeIf('?') !== undefined;
        if (!reader.is('IDENTIFIER') && !reader.is('ESC_IDENTIFIER')) reader.abortMismatched(['IDENTIFIER']);
        const field = fieldName(reader.take());
        reader.expect(':', EXPRESSION_START);
        entries.push({ field, value: this.#parseExpression(), optional });
        if (reader.takeIf(',') === undefined) break;
      }
      reader.takeIf(',');
    });
    this.#expectClose('}');
    return { kind: 'message', at, name, entries };
  }

  #parseList(): Expr {
    const { at } = this.#reader.take();
    const elements = this.#parseElements(']', () => this.#parseOptionalEntry());
    return { kind: 'list', at, elements };
  }

  #parseMap(): Expr {
    const { at } = this.#reader.take();
    const entries = this.#parseElements('}', () => {
      const { value: key, optional } = this.#parseOptionalEntry();
      this.#reader.expect(':', EXPRESSION_START);
      return { key, value: this.#parseExpression(), optional };
    });
    return { kind: 'map', at, entries };
  }

  /** Accepts a trailing comma. By the grammar, a comma alone is an empty list. */
  #parseElements<T>(close: ']' | '}', element: () => T): T[] {
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
    this.#expectClose(close);
    return elements;
  }

  #parseOptionalEntry(): Entry {
    const optional = this.#reader.takeIf('?') !== undefined;
    return { value: this.#parseExpression(), optional };
  }

  #parseLiteral(): Expr {
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

function balanceTerms(
  terms: readonly Expr[],
  operators: readonly Token[],
  name: string,
  from: number,
  to: number,
): Expr {
  if (to - from === 1) return terms[from] as Expr;
  const middle = Math.floor((from + to) / 2);
  const left = balanceTerms(terms, operators, name, from, middle);
  const right = balanceTerms(terms, operators, name, middle, to);
  return call(operators[middle - 1]?.at ?? 0, name, [left, right]);
}

/**
 * Reads tokens and reports syntax errors with the messages of cel-go's generated parser: one surplus token is skipped
 * ("extraneous input"), one missing token is inserted ("missing ')' at"), and anything else ends the parse ("mismatched
 * input"). cel-go tries to continue after that; its further messages are noise and are omitted.
 */
import { describeExpected, quoteSource } from '#cel/parse/token.ts';
import type { Token, TokenKind } from '#cel/parse/token.ts';
import type { CelProblem } from '#cel/syntax-error.ts';

/** Ends the parse. The reader holds the problems. */
export class ParseAbortError extends Error {
  override name = 'ParseAbortError';
}

/** cel-go stops after the same number. */
const MAX_PROBLEMS = 100;

export class TokenReader {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  readonly #problems: CelProblem[];
  readonly #end: Token;
  #next = 0;

  constructor(source: string, tokens: readonly Token[], problems: readonly CelProblem[]) {
    this.#source = source;
    this.#tokens = tokens;
    this.#problems = problems.slice(0, MAX_PROBLEMS);
    this.#end = tokens.at(-1) ?? { kind: '<EOF>', at: source.length, text: '' };
  }

  get problems(): readonly CelProblem[] {
    return this.#problems;
  }

  get token(): Token {
    return this.#tokens[this.#next] ?? this.#end;
  }

  peek(count: number): Token {
    return this.#tokens[this.#next + count] ?? this.#end;
  }

  is(kind: TokenKind): boolean {
    return this.token.kind === kind;
  }

  isOneOf(kinds: readonly TokenKind[]): boolean {
    return kinds.includes(this.token.kind);
  }

  take(): Token {
    const { token } = this;
    this.#next += 1;
    return token;
  }

  /** Returns undefined, and does not advance, if the next token is of another kind. */
  takeIf(kind: TokenKind): Token | undefined {
    return this.is(kind) ? this.take() : undefined;
  }

  /** Requires the next token to be of this kind. `follow` are the tokens that can follow it. */
  expect(kind: TokenKind, follow: readonly TokenKind[] = []): void {
    if (this.takeIf(kind) !== undefined) return;
    if (this.peek(1).kind === kind) {
      this.#reportExtraneous([kind]);
      this.take();
    } else if (follow.includes(this.token.kind)) {
      this.report(this.token.at, `Syntax error: missing ${describeExpected([kind])} at ${this.#quoteToken()}`);
    } else {
      this.abortMismatched([kind]);
    }
  }

  /** Requires the next token to be one of these; otherwise it reports the token as surplus. */
  expectOneOf(kinds: readonly TokenKind[]): void {
    if (this.isOneOf(kinds)) return;
    if (!kinds.includes(this.peek(1).kind)) this.abortMismatched(kinds);
    this.#reportExtraneous(kinds);
  }

  report(at: number, message: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push({ at, message });
  }

  abortMismatched(expected: readonly TokenKind[]): never {
    const message = `Syntax error: mismatched input ${this.#quoteToken()} expecting ${describeExpected(expected)}`;
    this.abort(this.token.at, message);
  }

  /** `from` is the token at which the alternatives diverge. */
  abortNoViableAlternative(from: Token): never {
    const text = this.#source.slice(from.at, this.token.at + this.token.text.length);
    this.abort(this.token.at, `Syntax error: no viable alternative at input ${quoteSource(text.trimEnd())}`);
  }

  abort(at: number, message: string): never {
    this.report(at, message);
    throw new ParseAbortError(message);
  }

  #reportExtraneous(expected: readonly TokenKind[]): void {
    const message = `Syntax error: extraneous input ${this.#quoteToken()} expecting ${describeExpected(expected)}`;
    this.report(this.token.at, message);
    this.take();
  }

  #quoteToken(): string {
    return this.is('<EOF>') ? "'<EOF>'" : quoteSource(this.token.text);
  }
}

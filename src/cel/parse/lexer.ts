/**
 * The lexer. As in cel-go, it reports and skips unrecognized text, so that one run finds all of it. literal.ts
 * interprets the literals.
 */
import { findStringEnd } from '#cel/parse/string-token.ts';
import { TOKEN_ORDER, quoteSource } from '#cel/parse/token.ts';
import type { Token, TokenKind } from '#cel/parse/token.ts';
import type { CelProblem } from '#cel/syntax-error.ts';

const SPACE = /[\t \r\n\f]+|\/\/[^\n]*/y;
const NUMBER = /(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?/y;
const IDENTIFIER = /[A-Za-z_][A-Za-z0-9_]*/y;
const ESCAPED_IDENTIFIER = /`[A-Za-z0-9_.\-/ ]+`/y;
/** Operators of two characters come first. */
const OPERATOR = /==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y;
const STRING_START = /[bB]?[rR]?["']/y;
const [QUOTE, APOSTROPHE, DOT, SLASH, UNDERSCORE, LETTER_B, LETTER_R] = [0x22, 0x27, 0x2e, 0x2f, 0x5f, 0x62, 0x72];
const WORDS: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null']);
const KINDS: ReadonlySet<string> = new Set(TOKEN_ORDER);

function isKind(text: string): text is TokenKind {
  return KINDS.has(text);
}

function match(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

interface LexResult {
  /** Ends with `<EOF>`. */
  readonly tokens: readonly Token[];
  readonly problems: readonly CelProblem[];
}

export function lex(source: string): LexResult {
  const tokens: Token[] = [];
  const problems: CelProblem[] = [];
  let at = 0;
  while (at < source.length) {
    const space = canStartSpace(source.charCodeAt(at)) ? match(SPACE, source, at) : undefined;
    if (space !== undefined) {
      at += space.length;
      continue;
    }
    const token = readToken(source, at);
    if (token !== undefined) {
      tokens.push(token);
      at += token.text.length;
      continue;
    }
    const end = endOfUnrecognized(source, at);
    problems.push({ at, message: `Syntax error: token recognition error at: ${quoteSource(source.slice(at, end))}` });
    at = end;
  }
  tokens.push({ kind: '<EOF>', at: source.length, text: '' });
  return { tokens, problems };
}

/** Reports whether the first character can start a space or comment, to avoid trying all patterns. */
function canStartSpace(code: number): boolean {
  return code <= 0x20 || code === SLASH;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || code === UNDERSCORE;
}

function canStartString(code: number): boolean {
  const lower = code | 0x20;
  return code === QUOTE || code === APOSTROPHE || lower === LETTER_B || lower === LETTER_R;
}

function readToken(source: string, at: number): Token | undefined {
  const code = source.charCodeAt(at);
  const string = canStartString(code) ? match(STRING_START, source, at) : undefined;
  if (string !== undefined) {
    const { end, closed } = findStringEnd(source, at, string);
    if (closed) return { kind: /^b/i.test(string) ? 'BYTES' : 'STRING', at, text: source.slice(at, end) };
  }
  const number = isDigit(code) || code === DOT ? match(NUMBER, source, at) : undefined;
  if (number !== undefined) return { kind: numberKind(number), at, text: number };
  const word = isLetter(code) ? match(IDENTIFIER, source, at) : undefined;
  if (word !== undefined) return { kind: WORDS.has(word) && isKind(word) ? word : 'IDENTIFIER', at, text: word };
  const operator = match(OPERATOR, source, at);
  if (operator !== undefined && isKind(operator)) return { kind: operator, at, text: operator };
  const escaped = match(ESCAPED_IDENTIFIER, source, at);
  return escaped === undefined ? undefined : { kind: 'ESC_IDENTIFIER', at, text: escaped };
}

function numberKind(text: string): TokenKind {
  if (/[uU]$/.test(text)) return 'NUM_UINT';
  return /^0x|^[0-9]+$/.test(text) ? 'NUM_INT' : 'NUM_FLOAT';
}

/** Returns the end of the unrecognized text, which includes the first character that no token can continue with. */
function endOfUnrecognized(source: string, at: number): number {
  const first = source[at] ?? '';
  let end = at;
  if (first === '"' || first === "'") end = findStringEnd(source, at, first).end;
  else if (first === '`') end = at + 1 + (/^[A-Za-z0-9_.\-/ ]*/.exec(source.slice(at + 1))?.[0].length ?? 0);
  else if (first === '=' || first === '&' || first === '|') end = at + 1;
  const failing = source.codePointAt(end);
  return failing === undefined ? source.length : end + String.fromCodePoint(failing).length;
}

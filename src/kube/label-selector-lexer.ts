/** Tokens of the label selector language. The grammar over them is label-selector.ts's. */

export type TokenKind = 'identifier' | 'in' | 'notin' | '=' | '==' | '!=' | '!' | '>' | '<' | ',' | '(' | ')' | 'end';

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const SPACE = /[ \t\r\n]/;
const SYMBOL = /[=!(),><]/;
/** An identifier is whatever stands between spaces and symbols; whether it is a good key or value is judged later. */
const IDENTIFIER = /[^ \t\r\n=!(),><]+/y;

export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at] as string;
    if (SPACE.test(char)) {
      at++;
      continue;
    }
    const token = SYMBOL.test(char) ? symbolAt(text, at) : identifierAt(text, at);
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '' });
  return tokens;
}

function symbolAt(text: string, at: number): Token {
  const two = text.slice(at, at + 2);
  if (two === '==' || two === '!=') return { kind: two, text: two };
  const one = two[0] as TokenKind;
  return { kind: one, text: one };
}

function identifierAt(text: string, at: number): Token {
  IDENTIFIER.lastIndex = at;
  const word = IDENTIFIER.exec(text)?.[0] ?? '';
  return { kind: word === 'in' || word === 'notin' ? word : 'identifier', text: word };
}

/** Splits label selectors into tokens. label-selector.ts parses them. */

export type SelectorTokenKind =
  | 'identifier'
  | 'in'
  | 'notin'
  | '='
  | '=='
  | '!='
  | '!'
  | '>'
  | '<'
  | ','
  | '('
  | ')'
  | 'end';

export interface SelectorToken {
  readonly kind: SelectorTokenKind;
  readonly text: string;
}

const SPACE = /[ \t\r\n]/;
const SYMBOL = /[=!(),><]/;
/** An identifier is any text between spaces and symbols. The parser checks whether it is a valid key or value. */
const IDENTIFIER = /[^ \t\r\n=!(),><]+/y;

export function tokenize(text: string): SelectorToken[] {
  const tokens: SelectorToken[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at] as string;
    if (SPACE.test(char)) {
      at++;
      continue;
    }
    const token = SYMBOL.test(char) ? readSymbol(text, at) : readIdentifier(text, at);
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '' });
  return tokens;
}

function readSymbol(text: string, at: number): SelectorToken {
  const two = text.slice(at, at + 2);
  if (two === '==' || two === '!=') return { kind: two, text: two };
  const one = two[0] as SelectorTokenKind;
  return { kind: one, text: one };
}

function readIdentifier(text: string, at: number): SelectorToken {
  IDENTIFIER.lastIndex = at;
  const word = IDENTIFIER.exec(text)?.[0] ?? '';
  return { kind: word === 'in' || word === 'notin' ? word : 'identifier', text: word };
}

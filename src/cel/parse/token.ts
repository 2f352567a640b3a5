/** The tokens of CEL. Names and order are those of cel-go's grammar, because messages list them in that order. */

export type TokenKind = (typeof TOKEN_ORDER)[number];

/** The order of tokens in "expecting {...}". */
export const TOKEN_ORDER = [
  '==',
  '!=',
  'in',
  '<',
  '<=',
  '>=',
  '>',
  '&&',
  '||',
  '[',
  ']',
  '{',
  '}',
  '(',
  ')',
  '.',
  ',',
  '-',
  '!',
  '?',
  ':',
  '+',
  '*',
  '/',
  '%',
  'true',
  'false',
  'null',
  'NUM_FLOAT',
  'NUM_INT',
  'NUM_UINT',
  'STRING',
  'BYTES',
  'IDENTIFIER',
  'ESC_IDENTIFIER',
  '<EOF>',
] as const;

export interface Token {
  readonly kind: TokenKind;
  /** Offset in the source (in UTF-16 units). */
  readonly at: number;
  /** Empty at the end of the source. */
  readonly text: string;
}

/** The tokens that can start an expression. */
export const EXPRESSION_START: readonly TokenKind[] = [
  '[',
  '{',
  '(',
  '.',
  '-',
  '!',
  'true',
  'false',
  'null',
  'NUM_FLOAT',
  'NUM_INT',
  'NUM_UINT',
  'STRING',
  'BYTES',
  'IDENTIFIER',
];

export function describeExpected(kinds: readonly TokenKind[]): string {
  const names = TOKEN_ORDER.filter((kind) => kinds.includes(kind)).map((kind) =>
    /^[A-Z<]{2}/.test(kind) ? kind : `'${kind}'`,
  );
  return names.length === 1 ? (names[0] ?? '') : `{${names.join(', ')}}`;
}

/** Quotes a piece of source on one line, for messages. */
export function quoteSource(text: string): string {
  return `'${text.replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')}'`;
}

/** The tokens of CEL. Their names and order are those of cel-go's grammar, because messages list them that way. */

export type TokenKind = (typeof TOKEN_ORDER)[number];

/** What "expecting {...}" lists, in this order. */
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
  /** Offset in the source (UTF-16). */
  readonly at: number;
  /** Empty at the end of the source. */
  readonly text: string;
}

/** The tokens that an expression may begin with. */
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

/** As the messages show a piece of source: in quotes and on one line. */
export function quoteSource(text: string): string {
  return `'${text.replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')}'`;
}

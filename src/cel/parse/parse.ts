/** Parses source into a tree with expanded macros, or reports all problems. */
import type { Expr } from '#cel/ast.ts';
import type { Macro } from '#cel/library.ts';
import { lex } from '#cel/parse/lexer.ts';
import { MAX_SOURCE_LENGTH, findSizeProblem } from '#cel/parse/limits.ts';
import { Parser } from '#cel/parse/parser.ts';
import { ParseAbortError, TokenReader } from '#cel/parse/token-reader.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';
import type { CelProblem } from '#cel/syntax-error.ts';

/**
 * Throws only CelSyntaxError, with problems in the order of the source. A problem of the whole source (too long, too
 * deep) has the offset -1.
 */
export function parse(source: string, macros: readonly Macro[]): Expr {
  if (source.length > MAX_SOURCE_LENGTH) {
    const message = `expression code point size exceeds limit: size: ${source.length}, limit ${MAX_SOURCE_LENGTH}`;
    throw new CelSyntaxError([{ at: -1, message }]);
  }
  const { tokens, problems } = lex(source);
  const reader = new TokenReader(source, tokens, problems);
  const tree = parseAll(reader, macros);
  if (tree === undefined || reader.problems.length > 0) throw new CelSyntaxError(inOrder(reader.problems));
  const tooLarge = findSizeProblem(tree);
  if (tooLarge !== undefined) throw new CelSyntaxError([{ at: -1, message: tooLarge }]);
  return tree;
}

function parseAll(reader: TokenReader, macros: readonly Macro[]): Expr | undefined {
  try {
    return new Parser(reader, macros).parseAll();
  } catch (error) {
    if (error instanceof ParseAbortError) return undefined;
    throw error;
  }
}

function inOrder(problems: readonly CelProblem[]): CelProblem[] {
  return problems.toSorted((a, b) => a.at - b.at);
}

/** Limits on the size of an expression, as source and as a tree. */
import type { Expr } from '#cel/ast.ts';

/**
 * Maximum number of characters. cel-go accepts 100,000, but compilation blocks the process: this many take at most 30
 * ms.
 */
export const MAX_SOURCE_LENGTH = 10_000;
/** Maximum nesting of brackets, and length of one chain: cel-go's recursion limit. */
export const MAX_NESTING = 250;
/** Maximum depth of the tree after macro expansion, so that code that walks the tree can recurse. */
const MAX_TREE_DEPTH = 600;
/** A macro can use an argument twice, so each nested macro can double the tree. */
const MAX_TREE_NODES = 50_000;

/** Returns the problem if the tree is too large, or undefined. */
export function findSizeProblem(tree: Expr): string | undefined {
  /** Uses its own stack, because the depth is not known yet. Counts shared parts each time. */
  const stack: { readonly expr: Expr; readonly depth: number }[] = [{ expr: tree, depth: 1 }];
  let nodes = 0;
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    nodes += 1;
    const depth = next.depth + 1;
    if (depth > MAX_TREE_DEPTH) return 'max recursion depth exceeded';
    if (nodes > MAX_TREE_NODES) return `expression size exceeds limit: ${MAX_TREE_NODES} nodes`;
    for (const expr of childrenOf(next.expr)) stack.push({ expr, depth });
  }
  return undefined;
}

function childrenOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'const':
    case 'ident':
      return [];
    case 'select':
      return [expr.operand];
    case 'call':
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case 'list':
      return expr.elements.map(({ value }) => value);
    case 'map':
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case 'message':
      return expr.entries.map(({ value }) => value);
    case 'fold':
      return [expr.range, expr.start, expr.condition, expr.step, expr.result];
  }
}

/** How large an expression may be, as source and as a tree. */
import type { Expr } from '#cel/ast.ts';

/** Characters. cel-go takes 100,000, but compiling holds the process: this many take 30 ms at worst. */
export const MAX_SOURCE_LENGTH = 10_000;
/** Brackets within brackets, and links of one chain: cel-go's bound on recursion. */
export const MAX_NESTING = 250;
/** Levels of the tree after macros are expanded. Who walks the tree may recurse. */
const MAX_TREE_DEPTH = 600;
/** A macro may use an argument twice: then nested ones double the tree each. */
const MAX_TREE_NODES = 50_000;

/** What is wrong with the size of the tree; undefined = nothing. */
export function sizeProblem(tree: Expr): string | undefined {
  /** Walks with its own stack, because the depth is not known yet; shared parts count each time they are met. */
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

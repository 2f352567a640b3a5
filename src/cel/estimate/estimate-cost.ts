/**
 * Estimates the maximum cost of an expression before it runs, as cel-go does: nodes, and for calls and folds the sizes
 * of their arguments. Sizes are known from literals, or from the schema at the path of fields to a value.
 */
import type { CallExpr, Expr, FoldExpr, SelectExpr } from '#cel/ast.ts';
import type { CheckedTree } from '#cel/check/annotations.ts';
import { estimateCall, type CallCost, type CostNode } from '#cel/estimate/call-cost.ts';
import {
  exactRange,
  MAX_COUNT,
  ZERO,
  ONE,
  addRanges,
  uniteRanges,
  multiplyRanges,
  type Range,
  UNKNOWN_RANGE,
} from '#cel/estimate/range.ts';
import { findSizeEstimate, type SizeEstimate } from '#cel/estimate/schema-sizes.ts';
import { ACCUMULATOR } from '#cel/parse/fold-parts.ts';
import type { CelType } from '#cel/type.ts';

const LIST_COST = exactRange(10);
const MAP_COST = exactRange(30);

/** `sizes` are the sizes of `self`. */
export function estimateCost(checked: CheckedTree, sizes: SizeEstimate): number {
  return new Estimate(checked, sizes).cost(checked.tree).max;
}

class Estimate {
  readonly #checked: CheckedTree;
  readonly #sizes: SizeEstimate;
  readonly #paths = new Map<Expr, readonly string[]>();
  readonly #known = new Map<Expr, Range>();
  /** The ranges of each fold variable, the innermost last. */
  readonly #ranges = new Map<string, Expr[]>();

  constructor(checked: CheckedTree, sizes: SizeEstimate) {
    this.#checked = checked;
    this.#sizes = sizes;
  }

  cost(expr: Expr): Range {
    switch (expr.kind) {
      case 'const':
        return ZERO;
      case 'ident':
        this.#paths.set(expr, this.#findPath(expr.name));
        return ONE;
      case 'select':
        return this.#estimateSelect(expr);
      case 'call':
        return this.#estimateCall(expr);
      case 'list':
        return addRanges(LIST_COST, ...expr.elements.map(({ value }) => this.cost(value)));
      case 'map':
        return addRanges(MAP_COST, ...expr.entries.flatMap(({ key, value }) => [this.cost(key), this.cost(value)]));
      case 'message':
        return ZERO;
      case 'fold':
        return this.#estimateFold(expr);
    }
  }

  #findPath(name: string): readonly string[] {
    const range = this.#ranges.get(name)?.at(-1);
    if (range === undefined) return [name];
    const path = this.#paths.get(range) ?? [];
    switch (this.#checked.typeOf(range).kind) {
      case 'list':
        return [...path, '@items'];
      case 'map':
        return [...path, '@keys'];
      default:
        return [];
    }
  }

  #estimateSelect(expr: SelectExpr): Range {
    const operand = this.cost(expr.operand);
    if (expr.test) return operand;
    this.#paths.set(expr, [...(this.#paths.get(expr.operand) ?? []), expr.field]);
    const { kind } = this.#checked.typeOf(expr.operand);
    return kind === 'map' || kind === 'object' || kind === 'param' ? addRanges(operand, ONE) : operand;
  }

  #estimateCall(expr: CallExpr): Range {
    const argCosts = expr.args.map((arg) => this.cost(arg));
    const args = expr.args.map((arg) => this.#toCostNode(arg));
    const call = this.#checked.callOf(expr);
    if (call === undefined) return addRanges(ONE, ...argCosts);
    const isMember = call.member && expr.target !== undefined;
    const target = isMember ? this.cost(expr.target) : ZERO;
    const given = {
      name: call.name,
      target: isMember ? this.#toCostNode(expr.target) : undefined,
      args,
      argCosts,
      size: (node: CostNode) => this.#estimateSize(node),
    };
    let found: CallCost | undefined;
    for (const { id } of call.overloads) {
      const one = estimateCall(id, given);
      found = found === undefined ? one : unionCosts(found, one);
      if (id === 'index_list') this.#paths.set(expr, [...(args[0]?.path ?? []), '@items']);
      if (id === 'index_map') this.#paths.set(expr, [...(args[0]?.path ?? []), '@values']);
    }
    if (found === undefined) return ZERO;
    if (found.size !== undefined) this.#known.set(expr, found.size);
    return addRanges(target, found.cost);
  }

  #estimateFold(expr: FoldExpr): Range {
    const before = addRanges(this.cost(expr.range), this.cost(expr.start));
    const scopes = this.#ranges.get(expr.variable) ?? [];
    this.#ranges.set(expr.variable, [...scopes, expr.range]);
    const round = addRanges(this.cost(expr.condition), this.cost(expr.step));
    this.#ranges.set(expr.variable, scopes);
    const result = this.cost(expr.result);
    const rounds = this.#estimateSize(this.#toCostNode(expr.range));
    this.#known.set(expr, rounds);
    return addRanges(before, result, multiplyRanges(rounds, round));
  }

  #toCostNode(expr: Expr): CostNode {
    const path = this.#paths.get(expr);
    return {
      expr,
      type: this.#checked.typeOf(expr),
      path: path === undefined || path.length === 0 || path[0] === ACCUMULATOR ? undefined : path,
      known: this.#known.get(expr) ?? literalSize(expr),
    };
  }

  #estimateSize({ known, path, type }: CostNode): Range {
    if (known !== undefined) return known;
    const sized = path && findSizeEstimate(this.#sizes, path);
    if (sized !== undefined) return { min: 0, max: Math.min(sized.maxElements, MAX_COUNT) };
    return isScalar(type) ? ONE : UNKNOWN_RANGE;
  }
}

function unionCosts(a: CallCost, b: CallCost): CallCost {
  const size = a.size === undefined || b.size === undefined ? (a.size ?? b.size) : uniteRanges(a.size, b.size);
  return { cost: uniteRanges(a.cost, b.cost), size };
}

function literalSize(expr: Expr): Range | undefined {
  switch (expr.kind) {
    case 'const': {
      const { value } = expr;
      if (typeof value === 'string') return exactRange([...value].length);
      return exactRange(value instanceof Uint8Array ? value.length : 1);
    }
    case 'list':
      return exactRange(expr.elements.length);
    case 'map':
      return exactRange(expr.entries.length);
    default:
      return undefined;
  }
}

const SCALARS: ReadonlySet<string> = new Set([
  'bool',
  'double',
  'int',
  'uint',
  'google.protobuf.Duration',
  'google.protobuf.Timestamp',
]);

function isScalar(type: CelType): boolean {
  return type.kind === 'primitive' && SCALARS.has(type.name);
}

/**
 * Estimates the cost of one call and the size of its result, with the figures of cel-go and of Kubernetes' libraries.
 */
import type { Expr } from '#cel/ast.ts';
import { exactly, MOST, NONE, ONE, plus, type Range, scaled, spanning, times, UNKNOWN } from '#cel/estimate/range.ts';
import type { CelType } from '#cel/type.ts';

/** Cost of reading text, per byte. */
const TEXT = 0.1;
/** Cost of a regular expression, per byte: an instruction has about four bytes. */
const PATTERN = 0.25;
const NAMED_FORMAT_PATTERN = 128;
const NAMED_FORMAT = 64;
const ADDRESS: Range = { min: 4, max: 16 };
const AUTHORIZATION = exactly(350_000);

export interface CostNode {
  readonly expr?: Expr;
  readonly type: CelType;
  /** The path of fields from a variable to the value. */
  readonly path: readonly string[] | undefined;
  readonly known: Range | undefined;
}

export interface GivenCall {
  readonly name: string;
  readonly target: CostNode | undefined;
  readonly args: readonly CostNode[];
  readonly argCosts: readonly Range[];
  size(node: CostNode): Range;
}

export interface CallCost {
  readonly cost: Range;
  /** The size of the result; undefined if unknown. */
  readonly size?: Range | undefined;
}

export function callCost(overload: string, call: GivenCall): CallCost {
  const all = plus(...call.argCosts);
  const sets = setsCost(call);
  if (sets !== undefined) return { cost: plus(sets, all) };
  const own = libraryCost(overload, call);
  if (own !== undefined) return { ...own, cost: plus(own.cost, all) };
  const standard = standardCost(overload, call, all);
  return standard ?? { cost: plus(ONE, all) };
}

const SETS: ReadonlyMap<string, number> = new Map([
  ['sets.contains', 1],
  ['sets.intersects', 1],
  // Checks both directions.
  ['sets.equivalent', 2],
]);

/**
 * Returns the size as the set and library functions count it. Unlike the standard functions, they do not count a scalar
 * as one element.
 */
function librarySize(call: GivenCall, node: CostNode | undefined): Range {
  if (node === undefined) return UNKNOWN;
  return node.known ?? (node.path === undefined ? UNKNOWN : call.size(node));
}

function setsCost(call: GivenCall): Range | undefined {
  const factor = SETS.get(call.name);
  if (factor === undefined || call.args.length !== 2) return undefined;
  const sizes = times(librarySize(call, call.args[0]), librarySize(call, call.args[1]));
  return plus(scaled(sizes, factor), ONE);
}

const PLAIN: ReadonlySet<string> = new Set([
  ...['serviceAccount', 'path', 'group', 'resource', 'subresource', 'namespace', 'name', 'allowed', 'reason'],
  ...['error', 'errored', 'masked', 'prefixLength', 'family', 'isUnspecified', 'isLoopback', 'isLinkLocalMulticast'],
  ...['isLinkLocalUnicast', 'isGlobalUnicast', 'format.named', 'sign', 'asInteger', 'isInteger', 'asApproximateFloat'],
  ...['isGreaterThan', 'isLessThan', 'compareTo', 'add', 'sub', 'getScheme', 'getHostname', 'getHost', 'getPort'],
  ...['getEscapedPath', 'getQuery'],
]);

function libraryCost(overload: string, call: GivenCall): CallCost | undefined {
  const { name, target, args } = call;
  if (PLAIN.has(name)) return { cost: ONE };
  const first = () => librarySize(call, args[0]);
  const self = () => librarySize(call, target);
  switch (name) {
    case 'check':
      return { cost: AUTHORIZATION };
    case 'isSorted':
    case 'sum':
    case 'max':
    case 'min':
    case 'indexOf':
    case 'lastIndexOf':
      return { cost: searchCost(call, self()) };
    case 'url':
      return args.length === 1 ? { cost: scaled(first(), TEXT), size: first() } : undefined;
    case 'lowerAscii':
    case 'upperAscii':
    case 'substring':
    case 'trim':
      return { cost: scaled(self(), TEXT), size: self() };
    case 'replace':
      return args.length < 2 ? undefined : { cost: scaled(self(), 2 * TEXT), size: replacedSize(call) };
    case 'split':
      return { cost: scaled(self(), 2 * TEXT), size: { min: 0, max: splitCount(args[1], self().max) } };
    case 'join': {
      const size = joinedSize(call, self());
      return { cost: scaled(size, TEXT), size };
    }
    case 'find':
    case 'findAll':
      return { cost: patternCost(self(), first()), size: { min: 0, max: self().max } };
    case 'cidr':
    case 'isIP':
    case 'isCIDR':
    case 'quantity':
    case 'isQuantity':
      return { cost: scaled(first(), TEXT) };
    case 'ip':
      return { cost: args.length === 0 || overload === 'cidr_ip' ? ONE : scaled(first(), TEXT) };
    case 'ip.isCanonical':
      return { cost: scaled(first(), 2 * TEXT) };
    case 'validate':
      return { cost: scaled(scaled(first(), TEXT), NAMED_FORMAT_PATTERN * PATTERN) };
    case 'containsIP': {
      const compared = scaled(plus(ADDRESS, ADDRESS), TEXT);
      return { cost: overload === 'cidr_contains_ip_string' ? plus(compared, scaled(first(), TEXT)) : compared };
    }
    case 'containsCIDR': {
      const compared = plus(scaled(plus(ADDRESS, ADDRESS), TEXT), scaled(ADDRESS, TEXT), ONE);
      return { cost: overload === 'cidr_contains_cidr_string' ? plus(compared, scaled(first(), TEXT)) : compared };
    }
    case '_==_':
      return opaqueEqualityCost(args);
    default:
      return undefined;
  }
}

/** Each element is compared; the cost of a text grows with its length. */
function searchCost(call: GivenCall, size: Range): Range {
  const element = elementOf(call.target);
  if (element === undefined) return scaled(size, TEXT);
  const isText = element.type.kind === 'primitive' && (element.type.name === 'string' || element.type.name === 'bytes');
  return times(size, isText ? plus(ONE, scaled(librarySize(call, element), TEXT)) : ONE);
}

function elementOf(list: CostNode | undefined): CostNode | undefined {
  if (list?.type.kind !== 'list') return undefined;
  return { type: list.type.element, path: list.path && [...list.path, '@items'], known: undefined };
}

/**
 * The maximum assumes that the shortest text is replaced by the longest, as often as possible; the minimum assumes the
 * opposite.
 */
function replacedSize(call: GivenCall): Range {
  const { target, args } = call;
  const text = librarySize(call, target);
  const from = librarySize(call, args[0]);
  const to = librarySize(call, args[1]);
  let most: [count: number, kept: number];
  if (from.min === 0) most = [text.max + 1, text.max];
  else if (to.max <= from.min) most = [0, text.max];
  else most = [Math.ceil(text.max / from.min), 0];
  let least: [count: number, kept: number];
  if (from.max === 0) least = [text.min + 1, text.min];
  else if (from.max <= to.min) least = [0, text.min];
  else least = [Math.ceil(text.min / from.max), 0];
  return plus(times({ min: least[0], max: most[0] }, to), { min: least[1], max: most[1] });
}

function splitCount(limit: CostNode | undefined, most: number): number {
  const value = limit?.expr?.kind === 'const' ? limit.expr.value : undefined;
  if (typeof value !== 'bigint') return most;
  return value < 0n ? MOST : Number(value);
}

function joinedSize(call: GivenCall, list: Range): Range {
  const element = elementOf(call.target);
  const texts = element === undefined ? NONE : times(list, librarySize(call, element));
  if (call.args.length === 0) return texts;
  const gaps = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
  return plus(texts, times(librarySize(call, call.args[0]), gaps));
}

function patternCost(text: Range, pattern: Range): Range {
  return times(scaled(plus(text, ONE), TEXT), scaled(pattern, PATTERN));
}

function opaqueEqualityCost([left, right]: readonly CostNode[]): CallCost | undefined {
  if (left?.type.kind !== 'opaque' || right?.type.kind !== 'opaque' || left.type.name !== right.type.name) {
    return undefined;
  }
  switch (left.type.name) {
    case 'kubernetes.NamedFormat':
      return { cost: scaled({ min: 1, max: NAMED_FORMAT }, TEXT) };
    case 'kubernetes.URL':
      return { cost: scaled({ min: 1, max: right.known?.max ?? 1 }, TEXT) };
    default:
      return { cost: ONE };
  }
}

function standardCost(overload: string, call: GivenCall, all: Range): CallCost | undefined {
  const { args, argCosts, target } = call;
  const sizeOf = (node: CostNode | undefined) => (node === undefined ? UNKNOWN : call.size(node));
  const first = () => sizeOf(args[0]);
  switch (overload) {
    case 'string_format':
      return { cost: plus(scaled(sizeOf(target), TEXT), all) };
    case 'string_to_bytes':
      return { cost: plus(scaled(first(), TEXT), all), size: { min: first().min, max: first().max * 4 } };
    case 'bytes_to_string':
      return { cost: plus(scaled(first(), TEXT), all), size: { min: Math.floor(first().min / 4), max: first().max } };
    case 'strings_quote':
      return { cost: plus(scaled(first(), TEXT), all), size: { min: first().min + 2, max: first().max * 2 + 2 } };
    case 'starts_with_string':
    case 'ends_with_string':
      return { cost: plus(scaled(first(), TEXT), all) };
    case 'in_list':
      return { cost: plus(sizeOf(args[1]), all) };
    case 'matches_string':
      return target && { cost: plus(patternCost(sizeOf(target), first()), all) };
    case 'contains_string':
      return { cost: plus(times(scaled(sizeOf(target), TEXT), scaled(first(), TEXT)), all) };
    case 'logical_or':
    case 'logical_and':
      return { cost: { min: argCosts[0]?.min ?? 0, max: all.max } };
    case 'conditional': {
      const [condition = NONE, yes = NONE, no = NONE] = argCosts;
      return { cost: plus(condition, spanning(yes, no)), size: spanning(sizeOf(args[1]), sizeOf(args[2])) };
    }
    case 'add_list':
      return { cost: plus(ONE, all), size: plus(first(), sizeOf(args[1])) };
    case 'add_string':
    case 'add_bytes': {
      const size = plus(first(), sizeOf(args[1]));
      return { cost: plus(scaled(size, TEXT), all), size };
    }
    default:
      return COMPARISONS.test(overload) ? { cost: plus(comparisonCost(first(), sizeOf(args[1])), all) } : undefined;
  }
}

const COMPARISONS = /^(?:equals|not_equals|(?:less|greater)(?:_equals)?_(?:string|bytes))$/;

function comparisonCost(a: Range, b: Range): Range {
  const max = Math.min(a.max, b.max);
  return scaled({ min: max > 0 ? 1 : 0, max }, TEXT);
}

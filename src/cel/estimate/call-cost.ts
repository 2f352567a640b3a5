/**
 * Estimates the cost of one call and the size of its result, with the figures of cel-go and of Kubernetes' libraries.
 */
import type { Expr } from '#cel/ast.ts';
import {
  exactRange,
  MAX_COUNT,
  ZERO,
  ONE,
  addRanges,
  type Range,
  scaleRange,
  uniteRanges,
  multiplyRanges,
  UNKNOWN_RANGE,
} from '#cel/estimate/range.ts';
import type { CelType } from '#cel/type.ts';

/** Cost of reading text, per byte. */
const TEXT = 0.1;
/** Cost of a regular expression, per byte: an instruction has about four bytes. */
const PATTERN = 0.25;
const NAMED_FORMAT_PATTERN = 128;
const NAMED_FORMAT = 64;
const ADDRESS: Range = { min: 4, max: 16 };
const AUTHORIZATION = exactRange(350_000);

export interface CostNode {
  readonly expr?: Expr;
  readonly type: CelType;
  /** The path of fields from a variable to the value. */
  readonly path: readonly string[] | undefined;
  readonly known: Range | undefined;
}

interface CallNode {
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

export function estimateCall(overload: string, call: CallNode): CallCost {
  const all = addRanges(...call.argCosts);
  const sets = setsCost(call);
  if (sets !== undefined) return { cost: addRanges(sets, all) };
  const own = libraryCost(overload, call);
  if (own !== undefined) return { ...own, cost: addRanges(own.cost, all) };
  const standard = standardCost(overload, call, all);
  return standard ?? { cost: addRanges(ONE, all) };
}

const SET_COST_FACTORS: ReadonlyMap<string, number> = new Map([
  ['sets.contains', 1],
  ['sets.intersects', 1],
  // Checks both directions.
  ['sets.equivalent', 2],
]);

/**
 * Returns the size as the set and library functions count it. Unlike the standard functions, they do not count a scalar
 * as one element.
 */
function librarySize(call: CallNode, node: CostNode | undefined): Range {
  if (node === undefined) return UNKNOWN_RANGE;
  return node.known ?? (node.path === undefined ? UNKNOWN_RANGE : call.size(node));
}

function setsCost(call: CallNode): Range | undefined {
  const factor = SET_COST_FACTORS.get(call.name);
  if (factor === undefined || call.args.length !== 2) return undefined;
  const sizes = multiplyRanges(librarySize(call, call.args[0]), librarySize(call, call.args[1]));
  return addRanges(scaleRange(sizes, factor), ONE);
}

const UNIT_COST_FUNCTIONS: ReadonlySet<string> = new Set([
  ...['serviceAccount', 'path', 'group', 'resource', 'subresource', 'namespace', 'name', 'allowed', 'reason'],
  ...['error', 'errored', 'masked', 'prefixLength', 'family', 'isUnspecified', 'isLoopback', 'isLinkLocalMulticast'],
  ...['isLinkLocalUnicast', 'isGlobalUnicast', 'format.named', 'sign', 'asInteger', 'isInteger', 'asApproximateFloat'],
  ...['isGreaterThan', 'isLessThan', 'compareTo', 'add', 'sub', 'getScheme', 'getHostname', 'getHost', 'getPort'],
  ...['getEscapedPath', 'getQuery'],
]);

function libraryCost(overload: string, call: CallNode): CallCost | undefined {
  const { name, target, args } = call;
  if (UNIT_COST_FUNCTIONS.has(name)) return { cost: ONE };
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
      return args.length === 1 ? { cost: scaleRange(first(), TEXT), size: first() } : undefined;
    case 'lowerAscii':
    case 'upperAscii':
    case 'substring':
    case 'trim':
      return { cost: scaleRange(self(), TEXT), size: self() };
    case 'replace':
      return args.length < 2 ? undefined : { cost: scaleRange(self(), 2 * TEXT), size: replacedSize(call) };
    case 'split':
      return { cost: scaleRange(self(), 2 * TEXT), size: { min: 0, max: splitCount(args[1], self().max) } };
    case 'join': {
      const size = joinedSize(call, self());
      return { cost: scaleRange(size, TEXT), size };
    }
    case 'find':
    case 'findAll':
      return { cost: patternCost(self(), first()), size: { min: 0, max: self().max } };
    case 'cidr':
    case 'isIP':
    case 'isCIDR':
    case 'quantity':
    case 'isQuantity':
      return { cost: scaleRange(first(), TEXT) };
    case 'ip':
      return { cost: args.length === 0 || overload === 'cidr_ip' ? ONE : scaleRange(first(), TEXT) };
    case 'ip.isCanonical':
      return { cost: scaleRange(first(), 2 * TEXT) };
    case 'validate':
      return { cost: scaleRange(scaleRange(first(), TEXT), NAMED_FORMAT_PATTERN * PATTERN) };
    case 'containsIP': {
      const compared = scaleRange(addRanges(ADDRESS, ADDRESS), TEXT);
      return {
        cost: overload === 'cidr_contains_ip_string' ? addRanges(compared, scaleRange(first(), TEXT)) : compared,
      };
    }
    case 'containsCIDR': {
      const compared = addRanges(scaleRange(addRanges(ADDRESS, ADDRESS), TEXT), scaleRange(ADDRESS, TEXT), ONE);
      return {
        cost: overload === 'cidr_contains_cidr_string' ? addRanges(compared, scaleRange(first(), TEXT)) : compared,
      };
    }
    case '_==_':
      return opaqueEqualityCost(args);
    default:
      return undefined;
  }
}

/** Each element is compared; the cost of a text grows with its length. */
function searchCost(call: CallNode, size: Range): Range {
  const element = elementOf(call.target);
  if (element === undefined) return scaleRange(size, TEXT);
  const isText = element.type.kind === 'primitive' && (element.type.name === 'string' || element.type.name === 'bytes');
  return multiplyRanges(size, isText ? addRanges(ONE, scaleRange(librarySize(call, element), TEXT)) : ONE);
}

function elementOf(list: CostNode | undefined): CostNode | undefined {
  if (list?.type.kind !== 'list') return undefined;
  return { type: list.type.element, path: list.path && [...list.path, '@items'], known: undefined };
}

/**
 * The maximum assumes that the shortest text is replaced by the longest, as often as possible; the minimum assumes the
 * opposite.
 */
function replacedSize(call: CallNode): Range {
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
  return addRanges(multiplyRanges({ min: least[0], max: most[0] }, to), { min: least[1], max: most[1] });
}

function splitCount(limit: CostNode | undefined, most: number): number {
  const value = limit?.expr?.kind === 'const' ? limit.expr.value : undefined;
  if (typeof value !== 'bigint') return most;
  return value < 0n ? MAX_COUNT : Number(value);
}

function joinedSize(call: CallNode, list: Range): Range {
  const element = elementOf(call.target);
  const texts = element === undefined ? ZERO : multiplyRanges(list, librarySize(call, element));
  if (call.args.length === 0) return texts;
  const gaps = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
  return addRanges(texts, multiplyRanges(librarySize(call, call.args[0]), gaps));
}

function patternCost(text: Range, pattern: Range): Range {
  return multiplyRanges(scaleRange(addRanges(text, ONE), TEXT), scaleRange(pattern, PATTERN));
}

function opaqueEqualityCost([left, right]: readonly CostNode[]): CallCost | undefined {
  if (left?.type.kind !== 'opaque' || right?.type.kind !== 'opaque' || left.type.name !== right.type.name) {
    return undefined;
  }
  switch (left.type.name) {
    case 'kubernetes.NamedFormat':
      return { cost: scaleRange({ min: 1, max: NAMED_FORMAT }, TEXT) };
    case 'kubernetes.URL':
      return { cost: scaleRange({ min: 1, max: right.known?.max ?? 1 }, TEXT) };
    default:
      return { cost: ONE };
  }
}

function standardCost(overload: string, call: CallNode, all: Range): CallCost | undefined {
  const { args, argCosts, target } = call;
  const sizeOf = (node: CostNode | undefined) => (node === undefined ? UNKNOWN_RANGE : call.size(node));
  const first = () => sizeOf(args[0]);
  switch (overload) {
    case 'string_format':
      return { cost: addRanges(scaleRange(sizeOf(target), TEXT), all) };
    case 'string_to_bytes':
      return { cost: addRanges(scaleRange(first(), TEXT), all), size: { min: first().min, max: first().max * 4 } };
    case 'bytes_to_string':
      return {
        cost: addRanges(scaleRange(first(), TEXT), all),
        size: { min: Math.floor(first().min / 4), max: first().max },
      };
    case 'strings_quote':
      return {
        cost: addRanges(scaleRange(first(), TEXT), all),
        size: { min: first().min + 2, max: first().max * 2 + 2 },
      };
    case 'starts_with_string':
    case 'ends_with_string':
      return { cost: addRanges(scaleRange(first(), TEXT), all) };
    case 'in_list':
      return { cost: addRanges(sizeOf(args[1]), all) };
    case 'matches_string':
      return target && { cost: addRanges(patternCost(sizeOf(target), first()), all) };
    case 'contains_string':
      return { cost: addRanges(multiplyRanges(scaleRange(sizeOf(target), TEXT), scaleRange(first(), TEXT)), all) };
    case 'logical_or':
    case 'logical_and':
      return { cost: { min: argCosts[0]?.min ?? 0, max: all.max } };
    case 'conditional': {
      const [condition = ZERO, yes = ZERO, no = ZERO] = argCosts;
      return { cost: addRanges(condition, uniteRanges(yes, no)), size: uniteRanges(sizeOf(args[1]), sizeOf(args[2])) };
    }
    case 'add_list':
      return { cost: addRanges(ONE, all), size: addRanges(first(), sizeOf(args[1])) };
    case 'add_string':
    case 'add_bytes': {
      const size = addRanges(first(), sizeOf(args[1]));
      return { cost: addRanges(scaleRange(size, TEXT), all), size };
    }
    default:
      return COMPARISONS.test(overload)
        ? { cost: addRanges(comparisonCost(first(), sizeOf(args[1])), all) }
        : undefined;
  }
}

const COMPARISONS = /^(?:equals|not_equals|(?:less|greater)(?:_equals)?_(?:string|bytes))$/;

function comparisonCost(a: Range, b: Range): Range {
  const max = Math.min(a.max, b.max);
  return scaleRange({ min: max > 0 ? 1 : 0, max }, TEXT);
}

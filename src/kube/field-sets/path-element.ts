/**
 * Path elements in the spelling of FieldsV1, and their order: fields by name, list items by key, set items by value,
 * and indexes. An element has one canonical spelling, so that elements can be compared as strings. Numbers, strings and
 * names of keys are spelled as by Go's JSON encoder.
 */
import { isRecord } from '#kube/meta.ts';

export const fieldElement = (name: string): string => `f:${name}`;

/** Returns the name of a field, or undefined if the element is not a field. */
export const fieldNameOf = (element: string): string | undefined =>
  element.startsWith('f:') ? element.slice(2) : undefined;

export const valueElement = (value: unknown): string => `v:${goJson(value)}`;

/** Returns the text before each value of a key. The names must be sorted. */
export function keyPrefixes(names: readonly string[]): string[] {
  return names.map((name, i) => `${i === 0 ? 'k:{' : ','}${goString(name, false)}:`);
}

export function keyElement(prefixes: readonly string[], values: readonly unknown[]): string {
  if (prefixes.length === 0) return 'k:{}';
  let text = '';
  for (let i = 0; i < prefixes.length; i++) text += prefixes[i]! + goJson(values[i]);
  return `${text}}`;
}

/** Returns the element of an item with one key, as in most lists. */
export const soleKeyElement = (prefix: string, value: unknown): string => `${prefix}${goJson(value)}}`;

/** Parses the key, value or index of a canonical element. */
const parseContent = (element: string): unknown => JSON.parse(element.slice(2));

/** Formats an element for users: `.spec`, `[name="web"]`, `[="x"]`, `[0]`. */
export function describeElement(element: string): string {
  switch (element[0]) {
    case 'f':
      return `.${element.slice(2)}`;
    case 'k': {
      const key = Object.entries(parseContent(element) as Record<string, unknown>);
      return `[${key
        .sort(([a], [b]) => compareGoStrings(a, b))
        .map(([name, value]) => `${name}=${describeValue(value)}`)
        .join(',')}]`;
    }
    case 'v':
      return `[=${describeValue(parseContent(element))}]`;
    default:
      return `[${element.slice(2)}]`;
  }
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(describeValue).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, item]) => `${name}=${describeValue(item)}`)
    .join('');
}

/** Returns the elements in the order of FieldsV1. */
export function sortElements(elements: Iterable<string>): string[] {
  const sorted = Array.from(elements);
  if (sorted.length < 2) return sorted;
  let inOrder = true;
  for (let i = 0; i < sorted.length; i++) {
    const element = sorted[i]!;
    if (!isField(element) && !isPlainItem(element)) return sortByValue(sorted);
    if (inOrder && i > 0) inOrder = compareGoStrings(sorted[i - 1]!, element) < 0;
  }
  return inOrder ? sorted : sorted.sort(compareGoStrings);
}

const PLAIN_ITEM = /^(?:k:\{"\w+":"[\w./:@-]*"\}|v:"[\w./:@-]*")$/;

/**
 * Reports whether an item is a single string without special characters, as most are. Such items have one spelling and
 * no character below the quote, so their order as text is the order of their values.
 */
export const isPlainItem = (element: string): boolean => PLAIN_ITEM.test(element);

/** Sorts elements by their values, each of which is parsed once. */
function sortByValue(elements: readonly string[]): string[] {
  return elements
    .map((element) => ({
      element,
      rank: RANKS.indexOf(element[0]!),
      value: isField(element) ? '' : parseContent(element),
    }))
    .sort((a, b) => a.rank - b.rank || compareSameKind(a, b))
    .map(({ element }) => element);
}

const RANKS = 'fkvi';

const isField = (element: string) => element.charCodeAt(0) === 0x66;

interface Sortable {
  readonly element: string;
  readonly value: unknown;
}

function compareSameKind(a: Sortable, b: Sortable): number {
  if (isField(a.element)) return compareGoStrings(a.element, b.element);
  return compareValues(a.value, b.value);
}

/** The order of types in a set of mixed values. */
function typeRank(value: unknown): number {
  if (typeof value === 'number') return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  if (Array.isArray(value)) return 3;
  return value === null ? 5 : 4;
}

function compareValues(a: unknown, b: unknown): number {
  const byType = typeRank(a) - typeRank(b);
  if (byType !== 0) return byType;
  if (typeof a === 'string') return compareGoStrings(a, b as string);
  if (typeof a === 'number' || typeof a === 'boolean') return Number(a) - Number(b);
  if (Array.isArray(a)) return compareLists(a, b as unknown[]);
  return isRecord(a) ? compareLists(flatten(a), flatten(b as Record<string, unknown>)) : 0;
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compareValues(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Returns name, value, name, value, ... Comparing these lists compares the maps. */
function flatten(map: Record<string, unknown>): unknown[] {
  return Object.keys(map)
    .sort(compareGoStrings)
    .flatMap((name) => [name, map[name]]);
}

/** Compares by bytes of UTF-8, as Go does. JavaScript compares UTF-16, which differs beyond U+D7FF. */
export function compareGoStrings(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return utf8Rank(left) - utf8Rank(right);
  }
  return a.length - b.length;
}

function utf8Rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Formats JSON like Go's encoder: maps sorted, and `<`, `>`, `&` escaped. */
function goJson(value: unknown): string {
  if (typeof value === 'string') return goString(value, true);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const names = Object.keys(value).sort(compareGoStrings);
  return `{${names.map((name) => `${goString(name, true)}:${goJson(value[name])}`).join(',')}}`;
}

const PLAIN = /^[\w ./:@-]*$/;
const ESCAPED = /[<>&\u2028\u2029]|\\[bf]|\\\\/g;

function goString(text: string, htmlSafe: boolean): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(ESCAPED, (found) => {
    if (found === '\\\\') return found;
    if (found === '\\b') return '\\u0008';
    if (found === '\\f') return '\\u000c';
    return htmlSafe ? `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}` : found;
  });
}

/**
 * cel-go's strings extension: the functions that search and cut strings. `format` has its own files. Kubernetes 1.32
 * has version 2 of the extension.
 */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { codePointCount, nextUnit, pointIndex, unitOffset } from '#cel/evaluate/text/code-points.ts';
import { formatOverload } from '#cel/extensions/format.ts';
import { quotedStyle } from '#cel/extensions/format-quoted.ts';
import { NAMED_ESCAPES } from '#cel/extensions/go-quote.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { backwardSearchCost, searchCost } from '#cel/evaluate/text/search-cost.ts';
import { join, replace, split } from '#cel/extensions/string-parts.ts';
import type { Library } from '#cel/library.ts';
import { INT, STRING, listOf } from '#cel/type.ts';
import type { CelList } from '#cel/value.ts';
import { CelFault } from '#cel/value.ts';

const STRINGS = listOf(STRING);

export const stringsLibrary: Library = {
  functions: {
    charAt: [method<[string, bigint]>('string_char_at_int', [STRING, INT], STRING, charAt)],
    format: [formatOverload(quotedStyle)],
    indexOf: [
      method<[string, string]>('string_index_of_string', [STRING, STRING], INT, (budget, text, part) =>
        indexOf(budget, text, part, 0n),
      ),
      method<[string, string, bigint]>('string_index_of_string_int', [STRING, STRING, INT], INT, indexOf),
    ],
    join: [
      method<[CelList]>('list_join', [STRINGS], STRING, (budget, list) => join(budget, list, '')),
      method<[CelList, string]>('list_join_string', [STRINGS, STRING], STRING, join),
    ],
    lastIndexOf: [
      method<[string, string]>('string_last_index_of_string', [STRING, STRING], INT, lastIndexOfAnywhere),
      method<[string, string, bigint]>('string_last_index_of_string_int', [STRING, STRING, INT], INT, lastIndexOf),
    ],
    lowerAscii: [method<[string]>('string_lower_ascii', [STRING], STRING, lowerAscii)],
    replace: [
      method<[string, string, string]>('string_replace_string_string', [STRING, STRING, STRING], STRING, replaceAll),
      method<[string, string, string, bigint]>(
        'string_replace_string_string_int',
        [STRING, STRING, STRING, INT],
        STRING,
        replace,
      ),
    ],
    split: [
      method<[string, string]>('string_split_string', [STRING, STRING], STRINGS, (budget, text, separator) =>
        split(budget, text, separator, -1n),
      ),
      method<[string, string, bigint]>('string_split_string_int', [STRING, STRING, INT], STRINGS, split),
    ],
    'strings.quote': [func<[string]>('strings_quote', [STRING], STRING, quote)],
    substring: [
      method<[string, bigint]>('string_substring_int', [STRING, INT], STRING, substringFrom),
      method<[string, bigint, bigint]>('string_substring_int_int', [STRING, INT, INT], STRING, substring),
    ],
    trim: [method<[string]>('string_trim', [STRING], STRING, trim)],
    upperAscii: [method<[string]>('string_upper_ascii', [STRING], STRING, upperAscii)],
  },
};

const outOfRange = (index: bigint) => new CelFault(`index out of range: ${index}`);

function charAt(budget: Budget, text: string, index: bigint): string | CelFault {
  budget.charge(bytesCost(text.length));
  const unit = unitOffset(text, Number(index));
  if (unit === undefined) return outOfRange(index);
  return unit === text.length ? '' : text.slice(unit, nextUnit(text, unit));
}

function indexOf(budget: Budget, text: string, part: string, from: bigint): bigint | CelFault {
  if (part === '') return from;
  if (from < 0n) return outOfRange(from);
  budget.charge(searchCost(text, part));
  const start = unitOffset(text, Number(from));
  if (start === undefined) return -1n;
  const unit = text.indexOf(part, start);
  return unit < 0 ? -1n : BigInt(pointIndex(text, unit));
}

function lastIndexOfAnywhere(budget: Budget, text: string, part: string): bigint | CelFault {
  budget.charge(backwardSearchCost(text, part));
  if (part === '') return BigInt(codePointCount(text));
  const unit = text.lastIndexOf(part);
  return unit < 0 ? -1n : BigInt(pointIndex(text, unit));
}

function lastIndexOf(budget: Budget, text: string, part: string, from: bigint): bigint | CelFault {
  if (part === '') return from;
  if (from < 0n) return outOfRange(from);
  budget.charge(backwardSearchCost(text, part));
  const start = unitOffset(text, Number(from));
  if (start === undefined || start === text.length) return -1n;
  const unit = text.lastIndexOf(part, start);
  return unit < 0 ? -1n : BigInt(pointIndex(text, unit));
}

function replaceAll(budget: Budget, text: string, from: string, to: string): string {
  return replace(budget, text, from, to, -1n);
}

function substringFrom(budget: Budget, text: string, start: bigint): string | CelFault {
  budget.charge(bytesCost(text.length));
  const unit = unitOffset(text, Number(start));
  return unit === undefined ? outOfRange(start) : text.slice(unit);
}

function substring(budget: Budget, text: string, start: bigint, end: bigint): string | CelFault {
  if (start > end) return new CelFault(`invalid substring range. start: ${start}, end: ${end}`);
  budget.charge(bytesCost(text.length));
  const first = unitOffset(text, Number(start));
  if (first === undefined) return outOfRange(start);
  const last = unitOffset(text, Number(end));
  return last === undefined ? outOfRange(end) : text.slice(first, last);
}

function lowerAscii(budget: Budget, text: string): string {
  budget.charge(bytesCost(text.length * CASE_BYTES));
  return isAscii(text) ? text.toLowerCase() : mapAscii(text, 0x41, 0x5a, 0x20);
}

function upperAscii(budget: Budget, text: string): string {
  budget.charge(bytesCost(text.length * CASE_BYTES));
  return isAscii(text) ? text.toUpperCase() : mapAscii(text, 0x61, 0x7a, -0x20);
}

/** The cost of one character of non-ASCII text, in bytes that are only read. */
const CASE_BYTES = 3;

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

/** Shifts the letters from `first` to `last` by `distance`, without creating a string per letter. */
function mapAscii(text: string, first: number, last: number, distance: number): string {
  const units = Buffer.from(text, 'utf16le');
  for (let i = 0; i < units.length; i += 2) {
    const unit = units.readUInt16LE(i);
    if (unit >= first && unit <= last) units.writeUInt16LE(unit + distance, i);
  }
  return units.toString('utf16le');
}

function trim(budget: Budget, text: string): string {
  budget.charge(bytesCost(text.length));
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Reports whether the character is white space for Go: includes U+0085, excludes the byte order mark. */
function isWhitespace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return /[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/.test(String.fromCharCode(unit));
}

const ESCAPED = /[\\"\x07\b\f\n\r\t\v]/;
const ALL_ESCAPED = new RegExp(ESCAPED, 'g');

function quote(budget: Budget, text: string): string {
  budget.charge(bytesCost(text.length * 3));
  const whole = text.toWellFormed();
  if (!ESCAPED.test(whole)) return `"${whole}"`;
  budget.charge(2 * text.length);
  return `"${whole.replaceAll(ALL_ESCAPED, (sign) => NAMED_ESCAPES.get(sign) ?? sign)}"`;
}

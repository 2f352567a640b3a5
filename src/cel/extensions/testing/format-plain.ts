/**
 * The style of `format` in the specification (and in cel-go from version 4 of its strings library): no quotes. For the
 * tests of the specification: Kubernetes 1.32 has an older version.
 */
import { CostLimitError } from '#cel/limits/budget.ts';
import { digitsCost, formatFixed, scientificParts, signOf } from '#cel/extensions/decimal-text.ts';
import type { FormatStyle, FormatText } from '#cel/extensions/format.ts';
import { FormatError, describeGiven, formatOverload, integerOf } from '#cel/extensions/format.ts';
import { MAX_FORMAT_DEPTH, stringClauseError, formatScalarText, sortEntries } from '#cel/extensions/format-scalar.ts';
import type { Library } from '#cel/library.ts';
import { CelList, CelMap } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const DIGITS = 6;

const plainStyle: FormatStyle = {
  string: (value, text) => addText(value, text, 0),

  decimal(value, text) {
    const number = numberOf(value);
    if (number === undefined)
      throw new FormatError(`decimal clause can only be used on integers, ${describeGiven(value)}`);
    text.add(typeof value === 'number' ? formatDoubleText(value) : String(integerOf(value)));
  },

  fixed(value, text, precision = DIGITS) {
    const number = numberOf(value);
    if (number === undefined)
      throw new FormatError(`fixed-point clause can only be used on doubles, ${describeGiven(value)}`);
    text.budget.charge(digitsCost(number));
    text.add(Number.isFinite(number) ? formatFixed(number, precision) : String(number));
  },

  scientific(value, text, precision = DIGITS) {
    const number = numberOf(value);
    if (number === undefined)
      throw new FormatError(`scientific clause can only be used on doubles, ${describeGiven(value)}`);
    text.budget.charge(digitsCost(number));
    if (!Number.isFinite(number)) return text.add(String(number));
    const { mantissa, exponent } = scientificParts(number, precision);
    text.add(`${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`);
  },
};

export const plainFormatLibrary: Library = { functions: { format: [formatOverload(plainStyle)] } };

function numberOf(value: CelValue): number | undefined {
  const integer = integerOf(value);
  return typeof value === 'number' ? value : integer === undefined ? undefined : Number(integer);
}

function formatDoubleText(value: number): string {
  return Number.isFinite(value) ? formatPlain(value) : String(value);
}

function addText(value: CelValue, text: FormatText, depth: number): void {
  if (depth > MAX_FORMAT_DEPTH) throw new CostLimitError();
  if (value instanceof CelList) return addList(value, text, depth);
  if (value instanceof CelMap) return addMap(value, text, depth);
  text.add(formatScalar(value, text));
}

function formatScalar(value: CelValue, text: FormatText): string {
  const shown = typeof value === 'number' ? formatDoubleText(value) : formatScalarText(value, text);
  if (shown === undefined) throw stringClauseError(value);
  return shown;
}

function addList(list: CelList, text: FormatText, depth: number): void {
  text.add('[');
  for (let i = 0; i < list.size; i++) {
    if (i > 0) text.add(', ');
    addText(list.at(i), text, depth + 1);
  }
  text.add(']');
}

function addMap(map: CelMap, text: FormatText, depth: number): void {
  text.add('{');
  for (const [i, { key, value }] of sortEntries(map, text, (key) => formatScalar(key, text)).entries()) {
    text.add(i > 0 ? `, ${key}: ` : `${key}: `);
    addText(value, text, depth + 1);
  }
  text.add('}');
}

/** Returns the shortest text without exponent that parses to the same value. */
function formatPlain(value: number): string {
  const [mantissa = '0', power = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const point = Number(power) + 1;
  const sign = signOf(value);
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (point >= digits.length) return `${sign}${digits.padEnd(point, '0')}`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/**
 * The style of `format` in Kubernetes 1.32 (version 2 of cel-go's strings library): elements of lists and maps are
 * literals, and numbers are formatted for US English: `1,234.500000`, `1.052033 × 10⁰³`.
 */
import { CostLimitError } from '#cel/limits/budget.ts';
import { formatDouble } from '#cel/evaluate/text/number-text.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import { digitsCost, formatFixed, scientificParts } from '#cel/extensions/decimal-text.ts';
import type { FormatStyle, FormatText } from '#cel/extensions/format.ts';
import { FormatError, describeGiven, integerOf } from '#cel/extensions/format.ts';
import { MAX_FORMAT_DEPTH, stringClauseError, formatScalarText, sortEntries } from '#cel/extensions/format-scalar.ts';
import { goQuote, needsEscape } from '#cel/extensions/go-quote.ts';
import { CelDuration, CelList, CelMap, CelTimestamp } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const DIGITS = 6;

export const quotedStyle: FormatStyle = {
  string(value, text) {
    if (value instanceof CelList || value instanceof CelMap) return addLiteral(value, text, 0);
    const shown = typeof value === 'number' ? formatDouble(value) : formatScalarText(value, text);
    if (shown === undefined) throw stringClauseError(value);
    text.add(shown);
  },

  decimal(value, text) {
    const integer = integerOf(value);
    if (integer === undefined)
      throw new FormatError(`decimal clause can only be used on integers, ${describeGiven(value)}`);
    text.add(String(integer));
  },

  fixed(value, text, precision = DIGITS) {
    const number = numberOf(value);
    if (number === undefined)
      throw new FormatError(`fixed-point clause can only be used on doubles, ${describeGiven(value)}`);
    text.budget.charge(digitsCost(number));
    text.add(special(number) ?? groupThousands(formatFixed(number, precision)));
  },

  /** cel-go uses the precision as a width here. */
  scientific(value, text, width = 0) {
    const number = numberOf(value);
    if (number === undefined)
      throw new FormatError(`scientific clause can only be used on doubles, ${describeGiven(value)}`);
    text.budget.charge(digitsCost(number));
    text.add((special(number) ?? toSuperscript(number)).padStart(width));
  },
};

function numberOf(value: CelValue): number | undefined {
  if (typeof value === 'number') return value;
  return value === 'NaN' || value === 'Infinity' || value === '-Infinity' ? Number(value) : undefined;
}

function special(number: number): string | undefined {
  if (Number.isNaN(number)) return 'NaN';
  return Number.isFinite(number) ? undefined : number > 0 ? '∞' : '-∞';
}

function groupThousands(text: string): string {
  const [sign = '', whole = ''] = /^(-?)(\d+)/.exec(text)?.slice(1) ?? [];
  const groups: string[] = [];
  for (let end = whole.length; end > 0; end -= 3) groups.push(whole.slice(Math.max(0, end - 3), end));
  return `${sign}${groups.toReversed().join(',')}${text.slice(sign.length + whole.length)}`;
}

function toSuperscript(number: number): string {
  const { mantissa, exponent } = scientificParts(number, DIGITS);
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  const raised = digits.replaceAll(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'.charAt(Number(digit)));
  return `${mantissa}\u202f×\u202f10${exponent < 0 ? '⁻' : ''}${raised}`;
}

function addLiteral(value: CelValue, text: FormatText, depth: number): void {
  if (depth > MAX_FORMAT_DEPTH) throw new CostLimitError();
  if (value instanceof CelList) return addList(value, text, depth);
  if (value instanceof CelMap) return addMap(value, text, depth);
  text.add(scalarLiteral(value, text));
}

function scalarLiteral(value: CelValue, text: FormatText): string {
  if (typeof value === 'number') {
    text.budget.charge(digitsCost(value));
    return Number.isFinite(value) ? formatFixed(value, DIGITS) : goQuote(formatDouble(value));
  }
  const shown = formatScalarText(value, text);
  if (shown === undefined) throw new FormatError(`no formatting function for ${typeOfValue(value).name}`);
  if (value instanceof CelTimestamp) return `timestamp(${goQuote(shown)})`;
  if (value instanceof CelDuration) return `duration(${goQuote(shown)})`;
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) return shown;
  text.charge(shown.length * 6);
  const hidden = needsEscape(shown);
  if (hidden) text.budget.charge(2 * shown.length);
  const quoted = hidden ? goQuote(shown) : `"${shown}"`;
  return typeof value === 'string' ? quoted : `b${quoted}`;
}

function addList(list: CelList, text: FormatText, depth: number): void {
  text.add('[');
  for (let i = 0; i < list.size; i++) {
    if (i > 0) text.add(', ');
    addLiteral(list.at(i), text, depth + 1);
  }
  text.add(']');
}

function addMap(map: CelMap, text: FormatText, depth: number): void {
  text.add('{');
  for (const [i, { key, value }] of sortEntries(map, text, (key) => keyLiteral(key, text)).entries()) {
    text.add(i > 0 ? `, ${key}:` : `${key}:`);
    addLiteral(value, text, depth + 1);
  }
  text.add('}');
}

function keyLiteral(key: CelValue, text: FormatText): string {
  if (typeof key === 'string' || typeof key === 'boolean' || integerOf(key) !== undefined) {
    return scalarLiteral(key, text);
  }
  throw new FormatError(`no formatting function for map key of type ${typeOfValue(key).name}`);
}

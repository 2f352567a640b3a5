/** Parses and formats numbers as Go does. The parsers return undefined for text that is not a number of the type. */
import { checkedInt, checkedUint } from '#cel/evaluate/arithmetic.ts';
import { CelFault } from '#cel/value.ts';
import type { CelUint } from '#cel/value.ts';

/** Numbers without leading zeros that fit are shorter. */
const MAX_NUMBER_TEXT = 400;

export function parseInteger(text: string): bigint | undefined {
  if (text.length > MAX_NUMBER_TEXT || !/^[+-]?\d+$/.test(text)) return undefined;
  const value = checkedInt(BigInt(text.replace(/^\+/, '')));
  return value instanceof CelFault ? undefined : value;
}

export function parseUnsigned(text: string): CelUint | undefined {
  if (text.length > MAX_NUMBER_TEXT || !/^\d+$/.test(text)) return undefined;
  const value = checkedUint(BigInt(text));
  return value instanceof CelFault ? undefined : value;
}

export function parseDouble(text: string): number | undefined {
  if (text.length > MAX_NUMBER_TEXT) return undefined;
  const special = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(text);
  if (special !== null) {
    if (/nan/i.test(special[2] ?? '')) return special[1] === '' ? NaN : undefined;
    return special[1] === '-' ? -Infinity : Infinity;
  }
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Formats like Go's %g: the shortest digits, with an exponent below 1e-4 and from 1e6. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  const sign = power < 0 ? '-' : '+';
  return `${digits}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

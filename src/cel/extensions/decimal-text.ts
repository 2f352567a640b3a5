/**
 * Formats doubles as decimals with a given number of digits, exact and rounded half to even, as Go's strconv does.
 * Callers charge digitsCost: values far from 1 have hundreds of digits.
 */

export function digitsCost(value: number): number {
  const power = Number.isFinite(value) && value !== 0 ? Math.abs(Math.log10(Math.abs(value))) : 0;
  return 20 + Math.ceil(power * 1.2);
}

interface Exact {
  readonly mantissa: bigint;
  /** The exponent to base 2. */
  readonly exponent: number;
}

const bits = new DataView(new ArrayBuffer(8));

/** Decomposes a finite value, ignoring its sign. */
function exactOf(value: number): Exact {
  bits.setFloat64(0, value);
  const raw = bits.getBigUint64(0);
  const biased = Number((raw >> 52n) & 0x7ffn);
  const fraction = raw & ((1n << 52n) - 1n);
  if (biased === 0) return { mantissa: fraction, exponent: -1074 };
  return { mantissa: fraction | (1n << 52n), exponent: biased - 1075 };
}

/** Returns |value| times ten to the power of `scale`, rounded. */
function scaled(value: number, scale: number): bigint {
  const { mantissa, exponent } = exactOf(value);
  const above = (mantissa << BigInt(Math.max(0, exponent))) * 10n ** BigInt(Math.max(0, scale));
  const below = (1n << BigInt(Math.max(0, -exponent))) * 10n ** BigInt(Math.max(0, -scale));
  const quotient = above / below;
  const twice = (above % below) * 2n;
  const roundsUp = twice > below || (twice === below && quotient % 2n === 1n);
  return roundsUp ? quotient + 1n : quotient;
}

export const signOf = (value: number): string => (value < 0 || Object.is(value, -0) ? '-' : '');

/** Formats a finite value as `%.<precision>f`. */
export function formatFixed(value: number, precision: number): string {
  const digits = String(scaled(value, precision)).padStart(precision + 1, '0');
  const whole = digits.slice(0, digits.length - precision);
  return `${signOf(value)}${whole}${precision > 0 ? `.${digits.slice(-precision)}` : ''}`;
}

/** Returns the parts of a finite value as `%.<precision>e`. */
export function scientificParts(value: number, precision: number): { mantissa: string; exponent: number } {
  let exponent = value === 0 ? 0 : Number(value.toExponential().split('e')[1]);
  let digits = String(scaled(value, precision - exponent));
  // Both the shortest text and the rounded digits can reach the next power of ten.
  if (digits.length > precision + 1) digits = String(scaled(value, precision - ++exponent));
  else if (digits.length < precision + 1 && value !== 0) digits = String(scaled(value, precision - --exponent));
  digits = digits.padEnd(precision + 1, '0');
  const fraction = precision > 0 ? `.${digits.slice(1, precision + 1)}` : '';
  return { mantissa: `${signOf(value)}${digits.charAt(0)}${fraction}`, exponent };
}

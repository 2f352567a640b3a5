/**
 * Go's representation of a quantity that is not too long: 64 bits with a decimal exponent that is never reduced. Needed
 * only by functions whose result depends on the representation.
 */

export interface QuantityAmount {
  readonly value: bigint;
  readonly scale: number;
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const MAX_DIGITS = 18;
const FINEST = -9;

const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** Parses a valid quantity. Returns undefined if Go represents it as a decimal of arbitrary length. */
export function amountOf(text: string): QuantityAmount | undefined {
  const [, sign = '', digits = '', fraction = '', suffix = ''] =
    /^([+-]?)0*([0-9]*)(?:\.([0-9]*))?(.*)$/s.exec(text) ?? [];
  const number = digits === '' ? '0' : digits;
  const size = BigInt(number + fraction);
  const signed = sign === '-' ? -size : size;

  const power = BINARY.indexOf(suffix);
  if (power > 0) {
    const exponent = 10 * power;
    const spare = 14 - number.length - Math.trunc((exponent * 3) / 10);
    return fraction === '' && spare >= 0 ? { value: signed << BigInt(exponent), scale: 0 } : undefined;
  }
  const known = DECIMAL.indexOf(suffix);
  const scale = (known >= 0 ? 3 * known - 9 : Number(suffix.slice(1))) - fraction.length;
  if (number.length + fraction.length > MAX_DIGITS || scale < FINEST) return undefined;
  return { value: signed, scale };
}

export function addAmounts(
  a: QuantityAmount | undefined,
  b: QuantityAmount | undefined,
  sign: 1n | -1n,
): QuantityAmount | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (b.value === 0n) return a;
  if (a.value === 0n) return { value: sign * b.value, scale: b.scale };
  // A larger shift cannot fit into 64 bits.
  if (Math.abs(a.scale - b.scale) > MAX_DIGITS + 1) return undefined;
  const scale = Math.min(a.scale, b.scale);
  const left = a.value * 10n ** BigInt(a.scale - scale);
  const right = b.value * 10n ** BigInt(b.scale - scale);
  const value = left + sign * right;
  return fits(left) && fits(right) && fits(value) ? { value, scale } : undefined;
}

/** Returns undefined if the amount is not a 64-bit integer in its current representation. */
export function amountAsInteger(amount: QuantityAmount | undefined): bigint | undefined {
  if (amount === undefined || amount.scale < 0) return undefined;
  if (amount.value === 0n) return 0n;
  if (amount.scale > MAX_DIGITS + 1) return undefined;
  const value = amount.value * 10n ** BigInt(amount.scale);
  return fits(value) ? value : undefined;
}

function fits(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX;
}

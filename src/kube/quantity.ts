/**
 * Kubernetes quantities (`1500m`, `4Gi`, `12e6`) as an exact number of nanos, the finest unit of Kubernetes. Like
 * resource.Quantity, parsing rounds finer values away from zero and limits binary quantities to 2^63-1.
 */

type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  readonly nanos: bigint;
  readonly format: QuantityFormat;
  /** The parsed text, if resource.Quantity would print it again instead of the canonical form. */
  readonly text?: string;
}

export class QuantityError extends Error {
  override name = 'QuantityError';
}

/** Kubernetes' message for a text that is not a quantity. */
export const INVALID_QUANTITY_TEXT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const INVALID_SUFFIX = "unable to parse quantity's suffix";

const NANOS = 10n ** 9n;
const INT64_MAX = 2n ** 63n - 1n;
const MAX_LENGTH = 256;
const MAX_EXPONENT = 256;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

interface Unit {
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

const UNITS: ReadonlyMap<string, Unit> = new Map<string, Unit>([
  ...DECIMAL_SUFFIXES.map((suffix, i): [string, Unit] => [
    suffix,
    { base: 10, exponent: 3 * i - 9, format: 'DecimalSI' },
  ]),
  ...BINARY_SUFFIXES.slice(1).map((suffix, i): [string, Unit] => [
    suffix,
    { base: 2, exponent: 10 * (i + 1), format: 'BinarySI' },
  ]),
]);

/** Parses a quantity. Throws QuantityError with Kubernetes' message. */
export function parseQuantity(text: string): Quantity {
  const parts = text.length > MAX_LENGTH ? null : /^([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)$/s.exec(text);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = parts ?? [];
  if (parts === null || whole + fraction === '' || !/^[eEinumkKMGTP]*[-+]?[0-9]*$/.test(suffix)) {
    throw new QuantityError(INVALID_QUANTITY_TEXT);
  }
  const unit = unitOf(suffix);
  const digits = BigInt(whole + fraction);
  const shift = 9 - fraction.length + (unit.base === 10 ? unit.exponent : 0);
  const scaled = unit.base === 2 ? digits << BigInt(unit.exponent) : digits;
  const exact = shift >= 0 ? scaled * 10n ** BigInt(shift) : ceilDivide(scaled, 10n ** BigInt(-shift));

  const isBinary = unit.format === 'BinarySI';
  const size = isBinary && exact > INT64_MAX * NANOS ? INT64_MAX * NANOS : exact;
  const format = isBinary && size > 0n && size < NANOS ? 'DecimalSI' : unit.format;
  const nanos = sign === '-' ? -size : size;
  return keepsText(whole, fraction, unit) ? { nanos, format, text } : { nanos, format };
}

/** Returns why a JSON value is not a quantity, in Kubernetes' words, or undefined if it is one. */
export function findQuantityError(value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return INVALID_QUANTITY_TEXT;
  try {
    parseQuantity(String(value));
    return undefined;
  } catch (error) {
    if (error instanceof QuantityError) return error.message;
    throw error;
  }
}

function unitOf(suffix: string): Unit {
  const known = UNITS.get(suffix);
  if (known !== undefined) return known;
  const exponent = /^[eE][-+]?[0-9]+$/.test(suffix) ? Number(suffix.slice(1)) : NaN;
  if (!(Math.abs(exponent) <= MAX_EXPONENT)) throw new QuantityError(INVALID_SUFFIX);
  return { base: 10, exponent, format: 'DecimalExponent' };
}

/**
 * Reports whether Go keeps the text. Its parser has a fast path for texts that look canonical, such as `1.500` and
 * `+5`.
 */
function keepsText(whole: string, fraction: string, { base, exponent }: Unit): boolean {
  const number = whole.replace(/^0+/, '') || '0';
  const shifted = number + fraction;
  if (base === 2) {
    const precision = 14 - number.length - Math.trunc((exponent * 3) / 10);
    return fraction === '' && precision >= 0 && (Number(number) & 7) !== 0;
  }
  const scale = exponent - fraction.length;
  return shifted.length <= 18 && scale >= -9 && scale % 3 === 0 && !shifted.endsWith('000') && shifted[0] !== '0';
}

export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}

/** Returns the sum, in the format of the first operand that is not zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

/** Returns the nearest double, which is exact for whole numbers up to 2^53. */
export function quantityToNumber({ nanos }: Quantity): number {
  return Number(nanos / NANOS) + Number(nanos % NANOS) / 1e9;
}

/** Formats like resource.Quantity: without a fraction, with the largest suffix that keeps the value exact. */
export function formatQuantity({ nanos, format, text }: Quantity): string {
  if (text !== undefined) return text;
  if (nanos === 0n) return '0';
  const size = nanos < 0n ? -nanos : nanos;
  const isBinary = format === 'BinarySI' && size >= 1024n * NANOS && size % NANOS === 0n;
  if (isBinary) {
    const [mantissa, times] = divideOut(nanos / NANOS, 1024n, BINARY_SUFFIXES.length - 1);
    return `${mantissa}${BINARY_SUFFIXES[times]}`;
  }
  const isExponent = format === 'DecimalExponent';
  const [mantissa, times] = divideOut(nanos, 1000n, isExponent ? Infinity : DECIMAL_SUFFIXES.length - 1);
  const exponent = 3 * times - 9;
  if (isExponent) return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${DECIMAL_SUFFIXES[times]}`;
}

function divideOut(value: bigint, factor: bigint, maxTimes: number): [bigint, number] {
  let times = 0;
  while (times < maxTimes && value % factor === 0n) {
    value /= factor;
    times++;
  }
  return [value, times];
}

function ceilDivide(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}

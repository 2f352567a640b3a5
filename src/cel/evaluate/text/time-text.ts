/**
 * Parses and formats timestamps (RFC 3339) and durations (the syntax of Go's time.ParseDuration). The parsers return
 * undefined for other text.
 */
import { checkedDuration, checkedTimestamp } from '#cel/evaluate/arithmetic.ts';
import type { CelDuration, CelFault, CelTimestamp } from '#cel/value.ts';

const NANOS = 1_000_000_000n;
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;
/** Valid timestamps and durations are shorter. Bounds the cost of parsing. */
export const MAX_TIME_TEXT = 128;

export function parseTimestamp(text: string): CelTimestamp | CelFault | undefined {
  const parts = text.length > MAX_TIME_TEXT ? null : RFC_3339.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const millis = utcMillis(year, month, day, hour, minute, second);
  if (millis === undefined) return undefined;
  const offsetMinutes = Number(parts[9] ?? 0) * 60 + Number(parts[10] ?? 0);
  if (Number(parts[9] ?? 0) > 24 || Number(parts[10] ?? 0) > 59) return undefined;
  const utc = millis - (parts[8] === '-' ? -offsetMinutes : offsetMinutes) * 60_000;
  return checkedTimestamp(BigInt(utc) * 1_000_000n + BigInt((parts[7] ?? '').slice(0, 9).padEnd(9, '0')));
}

/** Returns undefined if the date does not exist. */
function utcMillis(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined {
  const date = new Date(0);
  // Date.UTC maps years below 100 to the twentieth century.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.setUTCHours(hour, minute, second, 0);
}

export function formatTimestamp({ nanos }: CelTimestamp): string {
  const seconds = floorDivide(nanos, NANOS);
  const fraction = String(nanos - seconds * NANOS)
    .padStart(9, '0')
    .replace(/0+$/, '');
  const whole = new Date(Number(seconds) * 1000).toISOString().replace(/\.\d+Z$/, '');
  return `${whole}${fraction === '' ? '' : `.${fraction}`}Z`;
}

export function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', NANOS],
  ['m', 60n * NANOS],
  ['h', 3600n * NANOS],
]);
const DURATION = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/;
const PIECE = /(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g;

export function parseDuration(text: string): CelDuration | CelFault | undefined {
  const parts = text.length > MAX_TIME_TEXT ? null : DURATION.exec(text);
  if (parts === null) return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of (parts[2] ?? '').matchAll(PIECE)) {
    const size = UNITS.get(unit) ?? 0n;
    nanos += BigInt(whole) * size + (BigInt(fraction) * size) / 10n ** BigInt(fraction.length);
  }
  return checkedDuration(parts[1] === '-' ? -nanos : nanos);
}

/** Formats in seconds: `3600s`, `0.5s`. */
export function formatDuration({ nanos }: CelDuration): string {
  const seconds = Number(nanos / NANOS) + Number(nanos % NANOS) / 1e9;
  // JavaScript uses an exponent below 1e-6.
  const small = Math.abs(seconds) < 1e-6 && seconds !== 0;
  return `${small ? seconds.toFixed(9).replace(/0+$/, '') : seconds}s`;
}

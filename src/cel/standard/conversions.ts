/** int(), uint(), double(), string(), bytes(), bool(), timestamp(), duration(), type() and dyn(). */
import { isUtf8 } from 'node:buffer';
import { bytesCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { checkedInt, checkedTimestamp, checkedUint } from '#cel/evaluate/arithmetic.ts';
import { INT_OVERFLOW, UINT_OVERFLOW, conversionFault } from '#cel/evaluate/fault.ts';
import { formatDouble, parseDouble, parseInteger, parseUnsigned } from '#cel/evaluate/text/number-text.ts';
import { MAX_TIME_TEXT, floorDivide, formatDuration, formatTimestamp } from '#cel/evaluate/text/time-text.ts';
import { parseDuration, parseTimestamp } from '#cel/evaluate/text/time-text.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import type { Overload } from '#cel/library.ts';
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, param, typeOf } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import type { CelDuration, CelTimestamp, CelUint, CelValue } from '#cel/value.ts';

const A = param('A');
const SECOND = 1_000_000_000n;
/** Units for parsing or formatting a number or a time. */
const TEXT_UNITS = 10;
const TIME_TEXT_UNITS = 60;

/**
 * The implementation of a conversion. The evaluator calls it only with values of its `from` type; a method type, so
 * that implementations can declare the narrower type.
 */
type Work = { work(value: CelValue, budget: Budget): CelValue | CelFault }['work'];
type Write = { write(value: CelValue): string }['write'];

function convert(id: string, from: CelType, result: CelType, work: Work): Overload {
  return { id, member: false, args: [from], result, call: ([value], budget) => work(value as CelValue, budget) };
}

const identityConversion = (id: string, type: CelType) => convert(id, type, type, (value) => value);

/** Declares a conversion that parses text; `target` names the type in the fault. */
function parseConversion(
  id: string,
  result: CelType,
  target: string,
  parse: (text: string) => CelValue | CelFault | undefined,
  units = TEXT_UNITS,
): Overload {
  return convert(id, STRING, result, (text: string, budget) => {
    budget.charge(units + 3 * Math.min(text.length, MAX_TIME_TEXT));
    const value = parse(text);
    return value === undefined ? conversionFault('string', target) : value;
  });
}

function formatConversion(id: string, from: CelType, write: Write, units = TEXT_UNITS): Overload {
  return convert(id, from, STRING, (value, budget) => {
    budget.charge(units);
    return write(value);
  });
}

function doubleToInt(value: number): bigint | CelFault {
  // As in cel-go, both limits are out of range: a double at the limit may be a rounded number that does not fit.
  return value > -(2 ** 63) && value < 2 ** 63 ? BigInt(Math.trunc(value)) : INT_OVERFLOW;
}

function doubleToUint(value: number): CelUint | CelFault {
  return value >= 0 && value < 2 ** 64 ? checkedUint(BigInt(Math.trunc(value))) : UINT_OVERFLOW;
}

const utf8 = new TextEncoder();
const utf8Text = new TextDecoder('utf-8', { ignoreBOM: true });

function bytesToString(bytes: Uint8Array, budget: Budget): string | CelFault {
  budget.charge(TEXT_UNITS + bytesCost(bytes.length * 2));
  if (!isUtf8(bytes)) return new CelFault('invalid UTF-8 in bytes, cannot convert to string');
  return utf8Text.decode(bytes);
}

function stringToBytes(text: string, budget: Budget): Uint8Array {
  budget.charge(TEXT_UNITS + bytesCost(text.length * 2));
  return utf8.encode(text);
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

function parseBool(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}

export const conversions: Readonly<Record<string, readonly Overload[]>> = {
  int: [
    identityConversion('int64_to_int64', INT),
    convert('double_to_int64', DOUBLE, INT, doubleToInt),
    convert('duration_to_int64', DURATION, INT, ({ nanos }: CelDuration) => nanos),
    parseConversion('string_to_int64', INT, 'int', parseInteger),
    convert('timestamp_to_int64', TIMESTAMP, INT, ({ nanos }: CelTimestamp) => floorDivide(nanos, SECOND)),
    convert('uint64_to_int64', UINT, INT, ({ value }: CelUint) => checkedInt(value)),
  ],
  uint: [
    identityConversion('uint64_to_uint64', UINT),
    convert('double_to_uint64', DOUBLE, UINT, doubleToUint),
    convert('int64_to_uint64', INT, UINT, (value: bigint) => checkedUint(value)),
    parseConversion('string_to_uint64', UINT, 'uint', parseUnsigned),
  ],
  double: [
    identityConversion('double_to_double', DOUBLE),
    convert('int64_to_double', INT, DOUBLE, (value: bigint) => Number(value)),
    parseConversion('string_to_double', DOUBLE, 'double', parseDouble),
    convert('uint64_to_double', UINT, DOUBLE, ({ value }: CelUint) => Number(value)),
  ],
  bool: [identityConversion('bool_to_bool', BOOL), parseConversion('string_to_bool', BOOL, 'bool', parseBool)],
  bytes: [identityConversion('bytes_to_bytes', BYTES), convert('string_to_bytes', STRING, BYTES, stringToBytes)],
  string: [
    identityConversion('string_to_string', STRING),
    formatConversion('bool_to_string', BOOL, (value: boolean) => String(value)),
    convert('bytes_to_string', BYTES, STRING, bytesToString),
    formatConversion('double_to_string', DOUBLE, formatDouble),
    formatConversion('duration_to_string', DURATION, formatDuration, TIME_TEXT_UNITS),
    formatConversion('int64_to_string', INT, (value: bigint) => String(value)),
    formatConversion('timestamp_to_string', TIMESTAMP, formatTimestamp, TIME_TEXT_UNITS),
    formatConversion('uint64_to_string', UINT, ({ value }: CelUint) => String(value)),
  ],
  timestamp: [
    identityConversion('timestamp_to_timestamp', TIMESTAMP),
    convert('int64_to_timestamp', INT, TIMESTAMP, (seconds: bigint) => checkedTimestamp(seconds * SECOND)),
    parseConversion('string_to_timestamp', TIMESTAMP, 'google.protobuf.Timestamp', parseTimestamp, TIME_TEXT_UNITS),
  ],
  duration: [
    identityConversion('duration_to_duration', DURATION),
    parseConversion('string_to_duration', DURATION, 'google.protobuf.Duration', parseDuration, TIME_TEXT_UNITS),
  ],
  dyn: [convert('to_dyn', A, DYN, (value) => value)],
  type: [convert('type', A, typeOf(A), typeOfValue)],
};

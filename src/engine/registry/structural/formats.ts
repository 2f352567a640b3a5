/**
 * The string formats that Kubernetes supports; others are ignored. Hyphens in names are ignored (date-time, datetime).
 * These regular expressions are our own and linear; user-defined patterns run on RE2 (string-check.ts).
 */
import { isIP, isIPv6 } from 'node:net';
import type { Schema } from '#kube/schema.ts';

type Format = (value: string) => boolean;

const matches =
  (regex: RegExp): Format =>
  (value) =>
    regex.test(value);

const ISBN_10 = /^\d{9}[\dXx]$/;
const ISBN_13 = /^\d{13}$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:\d{2})$/i;
const HOST_LABEL = /^[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$/u;
const TOP_LABEL = /^[a-zA-Z\p{L}]{2,63}$/u;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const RGB = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/;
const GO_DURATION = /^[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const WORDED_DURATION =
  /\d\s*(?:ns|nano|us|µs|micro|ms|milli|s(?![a-z])|sec|m(?![a-z])|min|h(?![a-z])|hr|hour|d(?![a-z])|day|w(?![a-z])|wk|week)/i;

const formats: ReadonlyMap<string, Format> = new Map<string, Format>([
  ['bsonobjectid', matches(/^[0-9a-f]{24}$/i)],
  ['uri', isUri],
  ['email', matches(/^(?:[^<>@\s]+@[^<>@\s]+|[^<>@]*<[^<>@\s]+@[^<>@\s]+>)$/)],
  ['hostname', isHostname],
  ['ipv4', isIPv4],
  ['ipv6', isIPv6],
  ['cidr', isCidr],
  [
    'mac',
    matches(
      /^(?:[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2})?|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2,3})$/i,
    ),
  ],
  ['uuid', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid3', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid4', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['uuid5', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['isbn', (value) => isIsbn(value, ISBN_10) || isIsbn(value, ISBN_13)],
  ['isbn10', (value) => isIsbn(value, ISBN_10)],
  ['isbn13', (value) => isIsbn(value, ISBN_13)],
  ['creditcard', isCreditCard],
  ['ssn', matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ['hexcolor', matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['rgbcolor', isRgbColor],
  ['byte', isBase64],
  ['password', () => true],
  ['date', isDate],
  ['duration', (value) => GO_DURATION.test(value) || WORDED_DURATION.test(value)],
  ['datetime', isDateTime],
]);

const normalized = (format: string) => format.replaceAll('-', '');

export function formatCheck(format: string): Format | undefined {
  return formats.get(normalized(format));
}

/** Returns the format that applies to a schema, if any: each belongs to a type. */
export function supportedFormat({ type, format }: Schema): string | undefined {
  if (format === undefined) return undefined;
  switch (type) {
    case undefined:
    case 'string':
      return formats.has(normalized(format)) ? format : undefined;
    case 'integer':
      return format === 'int32' || format === 'int64' ? format : undefined;
    case 'number':
      return format === 'float' || format === 'double' ? format : undefined;
    default:
      return undefined;
  }
}

/** Parses by position, because every write checks a few times. */
function isDateTime(value: string): boolean {
  if (!DATE_TIME.test(value)) return false;
  return (
    isDate(value.slice(0, 10)) && twoDigits(value, 11) <= 23 && twoDigits(value, 14) <= 59 && twoDigits(value, 17) <= 59
  );
}

function isDate(value: string): boolean {
  if (!DATE.test(value)) return false;
  const month = twoDigits(value, 5);
  const day = twoDigits(value, 8);
  if (month < 1 || month > 12 || day < 1) return false;
  return day <= 28 || day <= new Date(Date.UTC(Number(value.slice(0, 4)), month, 0)).getUTCDate();
}

/** Returns the number in two digits at a position. */
function twoDigits(value: string, at: number): number {
  return (value.charCodeAt(at) - 48) * 10 + value.charCodeAt(at + 1) - 48;
}

/** Accepts the empty string: Secrets have empty values. */
function isBase64(value: string): boolean {
  return value.length % 4 === 0 && BASE64.test(value);
}

/** Tolerates leading zeros, as kube-apiserver does. */
function isIPv4(value: string): boolean {
  const parts = value.split('.');
  if (parts.length === 4) return parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255);
  return false;
}

function isCidr(value: string): boolean {
  const [address = '', bits = '', ...rest] = value.split('/');
  if (rest.length > 0 || !/^\d{1,3}$/.test(bits)) return false;
  if (isIPv4(address)) return Number(bits) <= 32;
  return isIP(address) === 6 && Number(bits) <= 128;
}

/** Accepts an absolute URI or an absolute path. */
function isUri(value: string): boolean {
  if (/[\s\p{Cc}]/u.test(value)) return false;
  return value.startsWith('/') || URL.canParse(value);
}

function isHostname(value: string): boolean {
  if (Buffer.byteLength(value) > 255) return false;
  const labels = value.split('.');
  if (!labels.every((label) => Buffer.byteLength(label) <= 63 && HOST_LABEL.test(label))) return false;
  return labels.length === 1 || TOP_LABEL.test(labels.at(-1) ?? '');
}

function isIsbn(value: string, form: RegExp): boolean {
  const digits = value.replaceAll(/[\s-]/g, '');
  if (!form.test(digits)) return false;
  const values = digits.split('').map((digit) => (digit === 'X' || digit === 'x' ? 10 : Number(digit)));
  if (values.length === 10) return sum(values, (digit, i) => digit * (10 - i)) % 11 === 0;
  return sum(values, (digit, i) => digit * (i % 2 === 0 ? 1 : 3)) % 10 === 0;
}

function isCreditCard(value: string): boolean {
  const digits = value.replaceAll(/\D/g, '');
  if (!/^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11})$/.test(digits)) {
    return false;
  }
  const values = digits.split('').toReversed().map(Number);
  return sum(values, (digit, i) => (i % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2)) % 10 === 0;
}

function isRgbColor(value: string): boolean {
  const parts = RGB.exec(value);
  return parts !== null && parts.slice(1).every((part) => Number(part) <= 255);
}

function sum(values: readonly number[], weigh: (value: number, index: number) => number): number {
  return values.reduce((total, value, index) => total + weigh(value, index), 0);
}

/** Converts strings with a schema format to times and bytes. */
import { parseDuration, parseTimestamp } from '#cel/evaluate/time-text.ts';
import type { Schema } from '#kube/schema.ts';
import { CelFault } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Returns the string unchanged if CEL has no type for the format. */
export function parseFormattedString(text: string, schema: Schema): CelValue | CelFault {
  if (schema['x-kubernetes-int-or-string'] === true) return text;
  switch (schema.format) {
    case 'date-time':
      return parseTimestamp(text.toUpperCase()) ?? new CelFault(`Invalid date-time format: ${text.slice(0, 64)}`);
    case 'date':
      return parseTimestamp(`${text}T00:00:00Z`) ?? new CelFault(`Invalid date format: ${text.slice(0, 64)}`);
    case 'duration':
      return parseDuration(text) ?? new CelFault(`Invalid duration format: ${text.slice(0, 64)}`);
    case 'byte':
      if (!BASE64.test(text)) return new CelFault('Invalid byte format: illegal base64 data');
      return new Uint8Array(Buffer.from(text, 'base64'));
    default:
      return text;
  }
}

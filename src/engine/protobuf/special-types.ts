/**
 * The types with a special JSON form. Each gets its values in the order of its table and a function that writes a
 * nested message by name.
 */
import { parseQuantity } from '#kube/quantity.ts';
import { timestamp } from '#lib/clock.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';
import type { MessageValues } from '#engine/protobuf/read-message.ts';
import { isUtf8 } from 'node:buffer';
import { parseJson } from '#engine/encoding/json.ts';

type WriteNamed = (message: string, values: MessageValues) => unknown;
type WriteSpecial = (values: MessageValues, write: WriteNamed) => unknown;

/** 0001-01-01, Go's zero time, which means unset; and the last second with a four-digit year. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;
const NANOS_PER_SECOND = 1_000_000_000;
const NANOS_PER_MICRO = 1000;

export const specialTypes: ReadonlyMap<string, WriteSpecial> = new Map<string, WriteSpecial>([
  ['Time', (values) => writeTime(values, false)],
  ['MicroTime', (values) => writeTime(values, true)],
  ['Quantity', writeQuantity],
  ['IntOrString', writeIntOrString],
  ['RawExtension', writeRaw],
  ['FieldsV1', writeRaw],
  ['JSON', writeRaw],
  // A Go client cannot distinguish an empty value from none; readers expect a list.
  ['ExtraValue', ([items]) => items ?? []],
  ['JSONSchemaPropsOrArray', writeSchemaOrArray],
  ['JSONSchemaPropsOrBool', writeSchemaOrBool],
  ['JSONSchemaPropsOrStringArray', writeSchemaOrStringArray],
]);

function writeTime(values: MessageValues, withMicros: boolean): string | null {
  // An empty message is Go's zero time, not the epoch.
  if (values.length === 0) return null;
  const [seconds = 0, nanos = 0] = values as (number | undefined)[];
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos >= NANOS_PER_SECOND) {
    throw new ProtobufError(`proto: invalid Timestamp: seconds ${seconds}, nanos ${nanos}`);
  }
  // Without micros, Kubernetes drops the fraction before it checks.
  const micros = withMicros ? Math.trunc(nanos / NANOS_PER_MICRO) : 0;
  if (seconds === FIRST_SECOND && micros === 0) return null;
  const text = timestamp(seconds * 1000);
  return withMicros ? `${text.slice(0, -1)}.${String(micros).padStart(6, '0')}Z` : text;
}

/** Go clients send the canonical text; the registry canonicalizes others, as for JSON bodies. */
function writeQuantity([text]: MessageValues): string {
  if (text === undefined) return '0';
  try {
    parseQuantity(text as string);
    return text as string;
  } catch (cause) {
    throw new ProtobufError((cause as Error).message, { cause });
  }
}

function writeIntOrString([type = 0, number = 0, text = '']: MessageValues): unknown {
  if (type === 0) return number;
  if (type === 1) return text;
  throw new ProtobufError('impossible IntOrString.Type');
}

function writeRaw([raw]: MessageValues): unknown {
  const bytes = raw as Buffer | undefined;
  return bytes === undefined || bytes.length === 0 ? null : parseRawJson(bytes);
}

function writeSchemaOrArray([schema, schemas]: MessageValues, write: WriteNamed): unknown {
  if (schemas !== undefined) return (schemas as MessageValues[]).map((item) => write('JSONSchemaProps', item));
  return schema === undefined ? null : write('JSONSchemaProps', schema as MessageValues);
}

function writeSchemaOrBool([allows = false, schema]: MessageValues, write: WriteNamed): unknown {
  return schema === undefined ? allows : write('JSONSchemaProps', schema as MessageValues);
}

function writeSchemaOrStringArray([schema, property]: MessageValues, write: WriteNamed): unknown {
  if (property !== undefined) return property;
  return schema === undefined ? null : write('JSONSchemaProps', schema as MessageValues);
}

/** Parses JSON that a message contains as bytes; untrusted and bounded like a JSON body. */
function parseRawJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: raw JSON contains invalid UTF-8');
  try {
    return parseJson(bytes.toString('utf8'));
  } catch (cause) {
    throw new ProtobufError(`json parse error: ${(cause as Error).message}`, { cause });
  }
}

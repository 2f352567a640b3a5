/**
 * Converts the values of a message to the JSON object that Kubernetes' encoder would write. The wire does not show
 * which fields were set: non-pointers are always present, so the table decides whether zero values are written. One
 * difference: a null of an optional field (such as an unset time) is omitted, because Kubernetes reads both alike.
 */
import { type Message, type MessageField, messageOf, type MessageSource } from '#engine/protobuf/message-layout.ts';
import type { MessageValues, WireValue } from '#engine/protobuf/read-message.ts';
import { specialTypes } from '#engine/protobuf/special-types.ts';

type JsonObject = Record<string, unknown>;

function writeJson(message: Message, values: MessageValues): unknown {
  const special = specialTypes.get(message.name);
  return special === undefined ? writeFields(message, values, {}) : special(values, writeSource);
}

/** Adds the fields of a message that is not a special type to `object`. */
export function writeFields(message: Message, values: MessageValues, object: JsonObject): JsonObject {
  for (const field of message.fields) {
    const value = values[field.index];
    if (field.name === '' && field.message !== undefined) {
      writeFields(messageOf(field.message), (value ?? []) as MessageValues, object);
      continue;
    }
    if (field.optional && isEmpty(field, value)) continue;
    const json = writeField(field, value);
    if (json !== null || !field.optional) object[field.name] = json;
  }
  return object;
}

function writeSource(source: MessageSource, values: MessageValues): unknown {
  return writeJson(messageOf(source), values);
}

/** Reports whether Go's `omitempty` omits the value: never a struct or the target of a pointer. */
function isEmpty(field: MessageField, value: WireValue | undefined): boolean {
  if (value === undefined) return field.pointer || field.shape !== 'one' || field.scalar !== undefined;
  if (field.shape === 'list') return (value as MessageValues).length === 0;
  if (field.shape === 'map') return (value as ReadonlyMap<string, WireValue>).size === 0;
  if (field.pointer || field.scalar === undefined) return false;
  return Buffer.isBuffer(value) ? value.length === 0 : value === '' || value === 0 || value === false;
}

function writeField(field: MessageField, value: WireValue | undefined): unknown {
  if (field.shape === 'one') return writeOne(field, value);
  if (value === undefined) return null;
  if (field.shape === 'list') return (value as MessageValues).map((item) => writeOne(field, item));
  const object: JsonObject = {};
  for (const [key, item] of value as ReadonlyMap<string, WireValue>) object[key] = writeOne(field, item);
  return object;
}

function writeOne(field: MessageField, value: WireValue | undefined): unknown {
  if (value === undefined && field.pointer) return null;
  if (field.message !== undefined) return writeSource(field.message, (value ?? []) as MessageValues);
  if (Buffer.isBuffer(value)) return value.toString('base64');
  return value ?? zeroOf(field);
}

function zeroOf({ scalar }: MessageField): unknown {
  if (scalar === 'string') return '';
  if (scalar === 'bytes') return null;
  return scalar === 'bool' ? false : 0;
}

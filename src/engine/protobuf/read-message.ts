/** Decodes wire bytes to the values of a message's fields, in protobuf types. write-json.ts converts them to JSON. */
import {
  type Message,
  type MessageField,
  messageOf,
  type ProtobufScalar,
  shortName,
} from '#engine/protobuf/message-layout.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';
import { END_GROUP, FIXED64, LENGTH_DELIMITED, VARINT, type WireReader } from '#engine/protobuf/wire-reader.ts';
import { unreachable } from '#lib/invariant.ts';

export type WireValue = string | number | boolean | Buffer | MessageValues | ReadonlyMap<string, WireValue>;

/** Values by Field.index; undefined if the wire has none. */
export type MessageValues = (WireValue | undefined)[];

const KEY = 1;
const VALUE = 2;

/** Adds to `values`: protobuf merges a repeated message. */
export function readMessage(reader: WireReader, message: Message, values: MessageValues = []): MessageValues {
  while (!reader.done) {
    const tag = reader.tag();
    const wireType = tag & 7;
    if (wireType === END_GROUP) {
      throw new ProtobufError(`proto: ${message.name}: wiretype end group for non-group`);
    }
    const field = message.byNumber[tag >>> 3];
    if (field === undefined) reader.skip(wireType);
    else values[field.index] = readField(reader, field, wireType, values[field.index]);
  }
  return values;
}

function readField(
  reader: WireReader,
  field: MessageField,
  wireType: number,
  before: WireValue | undefined,
): WireValue {
  if (field.shape === 'one') return readValue(reader, field, wireType, before);
  if (field.shape === 'map') return readEntry(reader, field, wireType, before as Map<string, WireValue> | undefined);
  const list = (before ?? []) as MessageValues;
  if (wireType === LENGTH_DELIMITED && isPackable(field.scalar)) {
    const packed = reader.span();
    while (!packed.done) {
      packed.countField();
      list.push(readScalar(packed, field.scalar));
    }
  } else {
    list.push(readValue(reader, field, wireType, undefined));
  }
  return list;
}

function readEntry(
  reader: WireReader,
  field: MessageField,
  wireType: number,
  map = new Map<string, WireValue>(),
): WireValue {
  if (wireType !== LENGTH_DELIMITED) throw wrongWireType(wireType, field);
  const entry = reader.span();
  let key = '';
  let value: WireValue | undefined;
  while (!entry.done) {
    const tag = entry.tag();
    if (tag === KEY * 8 + LENGTH_DELIMITED) key = entry.string();
    else if (tag >>> 3 === VALUE) value = readValue(entry, field, tag & 7, value);
    else entry.skip(tag & 7);
  }
  // As a JSON key it would reach the prototype.
  if (key !== '__proto__') map.set(key, value ?? emptyValue(field));
  return map;
}

function readValue(
  reader: WireReader,
  field: MessageField,
  wireType: number,
  before: WireValue | undefined,
): WireValue {
  if (wireType !== wireTypeOf(field.scalar)) throw wrongWireType(wireType, field);
  if (field.message === undefined) return readScalar(reader, field.scalar);
  return readMessage(reader.message(), messageOf(field.message), before as MessageValues | undefined);
}

function readScalar(reader: WireReader, scalar: ProtobufScalar): WireValue {
  switch (scalar) {
    case 'string':
      return reader.string();
    case 'bytes':
      return reader.bytes();
    case 'bool':
      return reader.bool();
    case 'int32':
      return reader.int32();
    case 'int64':
      return reader.int64();
    case 'double':
      return reader.double();
    default:
      return unreachable(scalar);
  }
}

/** Returns the value of an entry without a value. */
function emptyValue({ scalar }: MessageField): WireValue {
  if (scalar === undefined) return [];
  if (scalar === 'string') return '';
  if (scalar === 'bytes') return Buffer.alloc(0);
  return scalar === 'bool' ? false : 0;
}

function wireTypeOf(scalar: ProtobufScalar | undefined): number {
  if (scalar === undefined || scalar === 'string' || scalar === 'bytes') return LENGTH_DELIMITED;
  return scalar === 'double' ? FIXED64 : VARINT;
}

function isPackable(scalar: ProtobufScalar | undefined): scalar is ProtobufScalar {
  return wireTypeOf(scalar) !== LENGTH_DELIMITED;
}

function wrongWireType(wireType: number, { name, message }: MessageField): ProtobufError {
  const shown = name === '' && message !== undefined ? shortName(message) : name;
  return new ProtobufError(`proto: wrong wireType = ${wireType} for field ${shown}`);
}

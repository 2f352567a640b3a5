/** An independent implementation of the wire format for tests: each function returns the bytes of one field. */

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;

export function varint(value: number | bigint): Buffer {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

export function tag(field: number, wireType: number): Buffer {
  return varint(field * 8 + wireType);
}

export function int(field: number, value: number | bigint): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(value)]);
}

export function bool(field: number, value: boolean): Buffer {
  return int(field, value ? 1 : 0);
}

export function double(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([tag(field, FIXED64), bytes]);
}

export function bytes(field: number, content: Buffer): Buffer {
  return Buffer.concat([tag(field, LENGTH_DELIMITED), varint(content.length), content]);
}

export function text(field: number, content: string): Buffer {
  return bytes(field, Buffer.from(content));
}

export function message(field: number, ...fields: Buffer[]): Buffer {
  return bytes(field, Buffer.concat(fields));
}

/** Encodes one entry of a map with string keys; `value` is field 2. */
export function entry(field: number, key: string, ...value: Buffer[]): Buffer {
  return message(field, text(1, key), ...value);
}

/** Encodes a whole request body: the magic, and runtime.Unknown with the object's message. */
export function body(apiVersion: string, kind: string, ...fields: Buffer[]): Buffer {
  const typeMeta = message(1, text(1, apiVersion), text(2, kind));
  return Buffer.concat([Buffer.from('k8s\0'), typeMeta, message(2, ...fields), text(3, ''), text(4, '')]);
}

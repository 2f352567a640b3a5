/**
 * A cursor over one protobuf message: tags, scalars and nested messages, each checked against the message's end. Bounds
 * the cost of a body; read-message.ts interprets the fields.
 */
import { isUtf8 } from 'node:buffer';
import { ProtobufError, unexpectedEnd } from '#engine/protobuf/protobuf-error.ts';

export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH_DELIMITED = 2;
const START_GROUP = 3;
export const END_GROUP = 4;
const FIXED32 = 5;

export const MAX_MESSAGE_NESTING = 64;
/**
 * Two bytes can encode a message that becomes a large object of zero values, so the input length alone does not bound
 * memory and time.
 */
export const MAX_MESSAGES = 50_000;
/** Limit of all fields and list items, including zero values, which JSON omits. */
export const MAX_FIELDS = 100_000;

const REPLACEMENT = '\ufffd';
const TWO_TO_32 = 2 ** 32;

/** Shared by all readers of one body. */
interface Budget {
  messages: number;
  fields: number;
}

export class WireReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  readonly #depth: number;
  readonly #budget: Budget;
  #at: number;
  /** Halves of the last varint. */
  #low = 0;
  #high = 0;

  private constructor(bytes: Buffer, start: number, end: number, depth: number, budget: Budget) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#depth = depth;
    this.#budget = budget;
  }

  static over(bytes: Buffer): WireReader {
    return new WireReader(bytes, 0, bytes.length, 1, { messages: 0, fields: 0 });
  }

  get done(): boolean {
    return this.#at >= this.#end;
  }

  /** Returns field number and wire type as `number * 8 + type`. */
  tag(): number {
    this.countField();
    this.#varint();
    const tag = this.#low >>> 0;
    if (this.#high !== 0 || tag < 8) throw new ProtobufError(`proto: illegal tag ${tag >>> 3} (wire type ${tag & 7})`);
    return tag;
  }

  /** Counts a field or a list item that has no tag of its own. */
  countField(): void {
    if (++this.#budget.fields > MAX_FIELDS)
      throw new ProtobufError(`proto: too many fields: the limit is ${MAX_FIELDS}`);
  }

  bool(): boolean {
    this.#varint();
    return (this.#low | this.#high) !== 0;
  }

  int32(): number {
    this.#varint();
    return this.#low;
  }

  /** Returns the nearest double: above 2^53 precision is lost, as for every JSON number here. */
  int64(): number {
    this.#varint();
    return this.#high * TWO_TO_32 + (this.#low >>> 0);
  }

  double(): number {
    const start = this.#advance(8);
    const value = this.#bytes.readDoubleLE(start);
    if (!Number.isFinite(value)) throw new ProtobufError(`json: unsupported value: ${value}`);
    return value;
  }

  string(): string {
    const length = this.#length();
    const start = this.#advance(length);
    const text = this.#bytes.toString('utf8', start, start + length);
    // Invalid bytes decode to the replacement character, which may also be valid text.
    if (text.includes(REPLACEMENT) && !isUtf8(this.#bytes.subarray(start, start + length))) {
      throw new ProtobufError('proto: string field contains invalid UTF-8');
    }
    return text;
  }

  /** Returns a view, not a copy. */
  bytes(): Buffer {
    const length = this.#length();
    const start = this.#advance(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** Returns a reader over the nested message at the cursor, and moves past it. */
  message(): WireReader {
    if (this.#depth >= MAX_MESSAGE_NESTING) {
      throw new ProtobufError(`proto: message nested too deeply: the limit is ${MAX_MESSAGE_NESTING} levels`);
    }
    if (++this.#budget.messages > MAX_MESSAGES) {
      throw new ProtobufError(`proto: too many messages: the limit is ${MAX_MESSAGES}`);
    }
    return this.#nested(this.#depth + 1);
  }

  /** Returns a reader over a map entry or a packed list, which is not a nesting level. */
  span(): WireReader {
    return this.#nested(this.#depth);
  }

  /** Skips an unknown value. */
  skip(wireType: number): void {
    // Groups are nested without lengths; counting them instead of recursing keeps the stack flat.
    let groups = 0;
    for (let type = wireType; ; type = this.tag() & 7) {
      if (type === START_GROUP) groups++;
      else if (type === END_GROUP) groups--;
      else this.#skipValue(type);
      if (groups < 0) throw new ProtobufError('proto: unexpected end of group');
      if (groups === 0) return;
    }
  }

  #skipValue(wireType: number): void {
    if (wireType === VARINT) this.#varint();
    else if (wireType === FIXED64) this.#advance(8);
    else if (wireType === LENGTH_DELIMITED) this.#advance(this.#length());
    else if (wireType === FIXED32) this.#advance(4);
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }

  #nested(depth: number): WireReader {
    const length = this.#length();
    const start = this.#advance(length);
    return new WireReader(this.#bytes, start, start + length, depth, this.#budget);
  }

  #length(): number {
    this.#varint();
    if (this.#high < 0) throw new ProtobufError('proto: negative length found during unmarshaling');
    return this.#high * TWO_TO_32 + (this.#low >>> 0);
  }

  #advance(length: number): number {
    const start = this.#at;
    if (length > this.#end - start) throw unexpectedEnd();
    this.#at = start + length;
    return start;
  }

  #varint(): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 64; shift += 7) {
      if (this.#at >= this.#end) throw unexpectedEnd();
      const byte = this.#bytes[this.#at++]!;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) high = bits >> 4;
      else if (shift > 28) high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.#low = low;
        this.#high = high;
        return;
      }
    }
    throw new ProtobufError('proto: integer overflow');
  }
}

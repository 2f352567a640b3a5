/** WebSocket frames (RFC 6455 section 5) as bytes, written and read independently of the library that the program uses. */

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface RawFrame {
  readonly opcode: number;
  readonly payload: Buffer;
  /** True by default. */
  readonly fin?: boolean;
  /** The three reserved bits; 0 by default. */
  readonly reserved?: number;
}

const MASK = Buffer.from([1, 2, 3, 4]);

/** Encodes a frame of a client, or with `masked: false` one of a server. */
export function encodeFrame({ opcode, payload, fin = true, reserved = 0 }: RawFrame, masked = true): Buffer {
  const length = payload.length < 126 ? Buffer.from([payload.length]) : Buffer.alloc(payload.length < 65_536 ? 3 : 9);
  if (length.length === 3) length.writeUInt16BE(payload.length, 1);
  if (length.length === 9) length.writeBigUInt64BE(BigInt(payload.length), 1);
  if (length.length > 1) length[0] = length.length === 3 ? 126 : 127;
  const first = Buffer.from([(fin ? 0x80 : 0) | (reserved << 4) | opcode]);
  if (!masked) return Buffer.concat([first, length, payload]);
  length[0]! |= 0x80;
  return Buffer.concat([first, length, MASK, payload.map((byte, at) => byte ^ MASK[at % 4]!)]);
}

/** Returns the payload of a close frame. */
export function closePayload(code: number, reason: string | Buffer = ''): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(code);
  return Buffer.concat([bytes, Buffer.from(reason)]);
}

/** Turns the bytes of a server into frames. */
export class ServerFrames {
  #pending: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): RawFrame[] {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    const frames: RawFrame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  #next(): RawFrame | undefined {
    const bytes = this.#pending;
    if (bytes.length < 2) return undefined;
    const short = bytes[1]!;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < start) return undefined;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < start + length) return undefined;
    this.#pending = bytes.subarray(start + length);
    const payload = bytes.subarray(start, start + length);
    return { opcode: bytes[0]! & 0x0f, fin: (bytes[0]! & 0x80) !== 0, payload };
  }
}

/**
 * The frames of WebSocket (RFC 6455 section 5) as values. Pure. Who answers a ping or a close is websocket.ts's
 * business; what follows what (fragments, control frames in between) is checked here.
 */

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export type Opcode = (typeof OPCODES)[keyof typeof OPCODES];

export interface Frame {
  readonly opcode: Opcode;
  /** The last frame of its message. */
  readonly fin: boolean;
  readonly payload: Buffer;
}

/** The connection cannot go on, or was ended by the other side: a close code and why. */
export class WebSocketError extends Error {
  override name = 'WebSocketError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const CLOSE = {
  ...{ normal: 1000, protocol: 1002, abnormal: 1006, tooBig: 1009, internal: 1011 },
  /** Of the range that everybody may use: somebody else has taken the place. */
  replaced: 4001,
} as const;
const NO_CODE = 1005;

const MAX_CONTROL_BYTES = 125;
const MASK_BYTES = 4;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
/** The largest head: two bytes, the length as 64 bits, the mask. */
const MAX_HEAD_BYTES = 14;

/** `mask`: four bytes that nobody can foretell, from clients only. */
export function encodeFrame({ opcode, fin, payload }: Frame, mask?: Buffer): Buffer {
  const head = Buffer.alloc(MAX_HEAD_BYTES);
  head[0] = (fin ? 0x80 : 0) | opcode;
  let at = 2;
  if (payload.length < LENGTH_16) {
    head[1] = payload.length;
  } else if (payload.length <= 0xffff) {
    head[1] = LENGTH_16;
    at = head.writeUInt16BE(payload.length, at);
  } else {
    head[1] = LENGTH_64;
    at = head.writeBigUInt64BE(BigInt(payload.length), at);
  }
  if (mask === undefined) return Buffer.concat([head.subarray(0, at), payload]);
  head[1] |= 0x80;
  mask.copy(head, at);
  return Buffer.concat([head.subarray(0, at + MASK_BYTES), masked(payload, mask)]);
}

export function closePayload(code: number, reason: string): Buffer {
  const text = Buffer.from(reason, 'utf8').subarray(0, MAX_CONTROL_BYTES - 2);
  const payload = Buffer.alloc(2 + text.length);
  payload.writeUInt16BE(code);
  text.copy(payload, 2);
  return payload;
}

export function readClose(payload: Buffer): { readonly code: number; readonly reason: string } {
  if (payload.length < 2) return { code: NO_CODE, reason: '' };
  return { code: payload.readUInt16BE(), reason: payload.toString('utf8', 2) };
}

export interface FrameReaderOptions {
  /** Frames of clients are masked, those of servers are not. */
  readonly masked: boolean;
  readonly maxMessageBytes: number;
}

/** Bytes in as they come, whole frames out. Throws WebSocketError at the first that is wrong; then it is of no more use. */
export class FrameReader {
  readonly #options: FrameReaderOptions;
  #pending: Buffer = Buffer.alloc(0);
  /** Where #pending stands, with room for more; undefined while it is a part of what came. */
  #room: Buffer | undefined;
  /** Of the data message whose last fragment has not come yet. */
  #messageBytes: number | undefined;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): Frame[] {
    this.#append(chunk);
    const frames: Frame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  /** Into room that is doubled: a long frame that comes byte by byte would be copied for each byte otherwise. */
  #append(chunk: Buffer): void {
    const [had, length] = [this.#pending.length, this.#pending.length + chunk.length];
    if (had === 0) {
      this.#pending = chunk;
      this.#room = undefined;
      return;
    }
    let room = this.#room;
    if (room === undefined || room.length < length) {
      room = Buffer.allocUnsafe(2 * length);
      this.#pending.copy(room);
      this.#room = room;
    }
    chunk.copy(room, had);
    this.#pending = room.subarray(0, length);
  }

  #next(): Frame | undefined {
    const bytes = this.#pending;
    if (bytes.length < 2) return undefined;
    const [first, second] = [bytes[0]!, bytes[1]!];
    const fin = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw violation('a reserved bit is set');
    const opcode = opcodeOf(first & 0x0f);
    if (((second & 0x80) !== 0) !== this.#options.masked) {
      throw violation(this.#options.masked ? 'a frame of a client is not masked' : 'a frame of a server is masked');
    }
    const length = lengthOf(bytes, second & 0x7f);
    if (length === undefined) return undefined;
    this.#check(opcode, fin, length.bytes);
    const start = length.end + (this.#options.masked ? MASK_BYTES : 0);
    const end = start + length.bytes;
    if (bytes.length < end) return undefined;
    const raw = bytes.subarray(start, end);
    const payload = this.#options.masked ? masked(raw, bytes.subarray(length.end, start)) : raw;
    this.#pending = bytes.subarray(end);
    this.#room = undefined;
    this.#count(opcode, fin, payload.length);
    return { opcode, fin, payload };
  }

  /** Before the payload is there, so that nothing is held that would be refused. */
  #check(opcode: Opcode, fin: boolean, bytes: number): void {
    if (opcode >= OPCODES.close) {
      if (!fin) throw violation('a control frame is fragmented');
      if (bytes > MAX_CONTROL_BYTES) throw violation('a control frame is too long');
      return;
    }
    const within = this.#messageBytes !== undefined;
    if ((opcode === OPCODES.continuation) !== within) {
      throw violation(within ? 'a message begins within another' : 'there is nothing to continue');
    }
    if ((this.#messageBytes ?? 0) + bytes > this.#options.maxMessageBytes) {
      throw new WebSocketError(CLOSE.tooBig, `a message is larger than ${this.#options.maxMessageBytes} bytes`);
    }
  }

  #count(opcode: Opcode, fin: boolean, bytes: number): void {
    if (opcode >= OPCODES.close) return;
    this.#messageBytes = fin ? undefined : (this.#messageBytes ?? 0) + bytes;
  }
}

function opcodeOf(value: number): Opcode {
  const opcode = Object.values(OPCODES).find((known) => known === value);
  if (opcode === undefined) throw violation(`opcode ${value} is unknown`);
  return opcode;
}

/** undefined = not all of it has come. */
function lengthOf(bytes: Buffer, short: number): { readonly bytes: number; readonly end: number } | undefined {
  if (short < LENGTH_16) return { bytes: short, end: 2 };
  const end = short === LENGTH_16 ? 4 : 10;
  if (bytes.length < end) return undefined;
  // Past 2^53 it loses its last digits, and is far too long all the same.
  return { bytes: short === LENGTH_16 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)), end };
}

/** Masks and unmasks. */
function masked(payload: Buffer, mask: Buffer): Buffer {
  const out = Buffer.allocUnsafe(payload.length);
  for (let i = 0; i < payload.length; i++) out[i] = payload[i]! ^ mask[i & 3]!;
  return out;
}

function violation(why: string): WebSocketError {
  return new WebSocketError(CLOSE.protocol, why);
}

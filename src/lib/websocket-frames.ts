/**
 * The frames of WebSocket (RFC 6455 section 5) as values. Pure. Checks the order of frames (fragments, control frames
 * between them); websocket.ts answers pings and closes.
 */

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export type Opcode = (typeof OPCODES)[keyof typeof OPCODES];

export interface Frame {
  readonly opcode: Opcode;
  /** True for the last frame of a message. */
  readonly fin: boolean;
  readonly payload: Buffer;
}

/** The connection failed or was closed by the other side. Has the close code; the message is the reason. */
export class WebSocketError extends Error {
  override name = 'WebSocketError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const CLOSE_CODES = {
  ...{ normal: 1000, protocol: 1002, abnormal: 1006, tooBig: 1009, internal: 1011 },
  /** From the range for private use: another client took over the session. */
  replaced: 4001,
} as const;
const NO_CODE = 1005;

const MAX_CONTROL_BYTES = 125;
const MASK_BYTES = 4;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
/** The largest header: two bytes, a length of 64 bits, the mask. */
const MAX_HEADER_BYTES = 14;

/** Encodes a frame. `mask` is four unpredictable bytes, for frames of a client only. */
export function encodeFrame({ opcode, fin, payload }: Frame, mask?: Buffer): Buffer {
  const header = Buffer.alloc(MAX_HEADER_BYTES);
  header[0] = (fin ? 0x80 : 0) | opcode;
  let at = 2;
  if (payload.length < LENGTH_16) {
    header[1] = payload.length;
  } else if (payload.length <= 0xffff) {
    header[1] = LENGTH_16;
    at = header.writeUInt16BE(payload.length, at);
  } else {
    header[1] = LENGTH_64;
    at = header.writeBigUInt64BE(BigInt(payload.length), at);
  }
  if (mask === undefined) return Buffer.concat([header.subarray(0, at), payload]);
  header[1] |= 0x80;
  mask.copy(header, at);
  return Buffer.concat([header.subarray(0, at + MASK_BYTES), applyMask(payload, mask)]);
}

export function encodeClose(code: number, reason: string): Buffer {
  const text = Buffer.from(reason, 'utf8').subarray(0, MAX_CONTROL_BYTES - 2);
  const payload = Buffer.alloc(2 + text.length);
  payload.writeUInt16BE(code);
  text.copy(payload, 2);
  return payload;
}

export function parseClose(payload: Buffer): { readonly code: number; readonly reason: string } {
  if (payload.length < 2) return { code: NO_CODE, reason: '' };
  return { code: payload.readUInt16BE(), reason: payload.toString('utf8', 2) };
}

export interface FrameReaderOptions {
  /** True if the reader is for frames of clients, which are masked. */
  readonly masked: boolean;
  readonly maxMessageBytes: number;
}

/** Turns received bytes into frames. Throws WebSocketError on the first invalid frame and cannot be used afterwards. */
export class FrameReader {
  readonly #options: FrameReaderOptions;
  #pending: Buffer = Buffer.alloc(0);
  /**
   * The buffer that #pending is a part of, if there is space after it; undefined while #pending is a part of a chunk.
   */
  #buffer: Buffer | undefined;
  /** Bytes so far of the data message whose last fragment has not arrived yet. */
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

  /**
   * Appends to a buffer that doubles its size, so that a long frame that arrives byte by byte is not copied every time.
   */
  #append(chunk: Buffer): void {
    const [had, length] = [this.#pending.length, this.#pending.length + chunk.length];
    if (had === 0) {
      this.#pending = chunk;
      this.#buffer = undefined;
      return;
    }
    let buffer = this.#buffer;
    if (buffer === undefined || buffer.length < length) {
      buffer = Buffer.allocUnsafe(2 * length);
      this.#pending.copy(buffer);
      this.#buffer = buffer;
    }
    chunk.copy(buffer, had);
    this.#pending = buffer.subarray(0, length);
  }

  #next(): Frame | undefined {
    const bytes = this.#pending;
    if (bytes.length < 2) return undefined;
    const [first, second] = [bytes[0]!, bytes[1]!];
    const fin = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw protocolError('a reserved bit is set');
    const opcode = opcodeOf(first & 0x0f);
    if (((second & 0x80) !== 0) !== this.#options.masked) {
      throw protocolError(this.#options.masked ? 'a frame of a client is not masked' : 'a frame of a server is masked');
    }
    const length = lengthOf(bytes, second & 0x7f);
    if (length === undefined) return undefined;
    this.#check(opcode, fin, length.bytes);
    const start = length.end + (this.#options.masked ? MASK_BYTES : 0);
    const end = start + length.bytes;
    if (bytes.length < end) return undefined;
    const raw = bytes.subarray(start, end);
    const payload = this.#options.masked ? applyMask(raw, bytes.subarray(length.end, start)) : raw;
    this.#pending = bytes.subarray(end);
    this.#buffer = undefined;
    this.#countBytes(opcode, fin, payload.length);
    return { opcode, fin, payload };
  }

  /** Checks a frame before its payload has arrived, so that a frame that will be refused is not buffered. */
  #check(opcode: Opcode, fin: boolean, bytes: number): void {
    if (opcode >= OPCODES.close) {
      if (!fin) throw protocolError('a control frame is fragmented');
      if (bytes > MAX_CONTROL_BYTES) throw protocolError('a control frame is too long');
      return;
    }
    const isContinuing = this.#messageBytes !== undefined;
    if ((opcode === OPCODES.continuation) !== isContinuing) {
      throw protocolError(isContinuing ? 'a message begins inside another' : 'there is no message to continue');
    }
    if ((this.#messageBytes ?? 0) + bytes > this.#options.maxMessageBytes) {
      throw new WebSocketError(CLOSE_CODES.tooBig, `a message is larger than ${this.#options.maxMessageBytes} bytes`);
    }
  }

  #countBytes(opcode: Opcode, fin: boolean, bytes: number): void {
    if (opcode >= OPCODES.close) return;
    this.#messageBytes = fin ? undefined : (this.#messageBytes ?? 0) + bytes;
  }
}

function opcodeOf(value: number): Opcode {
  const opcode = Object.values(OPCODES).find((known) => known === value);
  if (opcode === undefined) throw protocolError(`opcode ${value} is unknown`);
  return opcode;
}

/** Returns the length of the payload and the end of the length field, or undefined if the field is incomplete. */
function lengthOf(bytes: Buffer, short: number): { readonly bytes: number; readonly end: number } | undefined {
  if (short < LENGTH_16) return { bytes: short, end: 2 };
  const end = short === LENGTH_16 ? 4 : 10;
  if (bytes.length < end) return undefined;
  // A number above 2^53 is not exact, but far above the limit anyway.
  return { bytes: short === LENGTH_16 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)), end };
}

/** Masks or unmasks a payload. */
function applyMask(payload: Buffer, mask: Buffer): Buffer {
  const out = Buffer.allocUnsafe(payload.length);
  for (let i = 0; i < payload.length; i++) out[i] = payload[i]! ^ mask[i & 3]!;
  return out;
}

function protocolError(message: string): WebSocketError {
  return new WebSocketError(CLOSE_CODES.protocol, message);
}

/**
 * One side of an open WebSocket as a stream of bytes. Written bytes are sent as binary messages; the payloads of
 * received messages are read. Answers pings. A normal close by the other side ends the stream; a close with an error
 * code and a broken connection are a WebSocketError.
 */
import { Duplex } from 'node:stream';
import { newUid } from '#lib/ids.ts';
import {
  CLOSE_CODES,
  encodeClose,
  encodeFrame,
  FrameReader,
  OPCODES,
  parseClose,
  WebSocketError,
  type Frame,
  type Opcode,
} from '#lib/websocket-frames.ts';

export const MAX_MESSAGE_BYTES = 1024 * 1024;
/**
 * Larger writes are split into messages of this size, because other implementations limit it. Fits the largest
 * datagram.
 */
const MESSAGE_BYTES = 64 * 1024;
/** Limit for pongs that the other side does not read. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Time for the other side to receive our close before the connection is destroyed. */
const LINGER_MS = 5000;
/** Close codes of a normal end: normal, going away, no code. */
const NORMAL_CLOSE_CODES: ReadonlySet<number> = new Set([1000, 1001, 1005]);

export interface WebSocketOptions {
  readonly role: 'server' | 'client';
  /** Bytes that were read from the connection after the handshake. */
  readonly head?: Buffer;
  readonly maxMessageBytes?: number;
}

export class WebSocketStream extends Duplex {
  readonly #connection: Duplex;
  readonly #masks: boolean;
  readonly #reader: FrameReader;
  #closeSent = false;
  #ended = false;

  constructor(connection: Duplex, { role, head, maxMessageBytes = MAX_MESSAGE_BYTES }: WebSocketOptions) {
    super({ allowHalfOpen: false });
    this.#connection = connection;
    this.#masks = role === 'client';
    this.#reader = new FrameReader({ masked: role === 'server', maxMessageBytes });
    connection.on('data', (chunk: Buffer) => this.#receive(chunk));
    connection.on('error', () => this.#handleDisconnect());
    connection.once('end', () => this.#handleDisconnect());
    connection.once('close', () => this.#handleDisconnect());
    if (head !== undefined && head.length > 0) this.#receive(head);
    if (connection.destroyed) this.#handleDisconnect();
  }

  /** Closes the connection and sends the reason to the other side. A repeated call does nothing. */
  close(code: number, reason: string): void {
    this.#sendClose(code, reason);
    this.destroy();
  }

  override _read(): void {
    this.#connection.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#closeSent) {
      done(new WebSocketError(CLOSE_CODES.abnormal, 'the connection is closed'));
      return;
    }
    for (let at = 0; at < chunk.length; at += MESSAGE_BYTES) {
      const payload = chunk.subarray(at, at + MESSAGE_BYTES);
      const last = at + MESSAGE_BYTES >= chunk.length;
      this.#send(OPCODES.binary, payload, last ? done : undefined);
    }
    if (chunk.length === 0) done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sendClose(CLOSE_CODES.normal, '');
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error !== null) this.#sendClose(CLOSE_CODES.internal, '');
    else this.#sendClose(CLOSE_CODES.normal, '');
    // Keep reading, so that the other side's own close does not cause a connection reset.
    this.#connection.resume();
    const timer = setTimeout(() => this.#connection.destroy(), LINGER_MS);
    timer.unref();
    this.#connection.once('close', () => clearTimeout(timer));
    if (this.#connection.readableEnded) this.#connection.destroy();
    else this.#connection.once('end', () => this.#connection.destroy());
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#ended || this.destroyed) return;
    try {
      for (const frame of this.#reader.push(chunk)) this.#handleFrame(frame);
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error;
      this.#sendClose(error.code, error.message);
      this.destroy(error);
    }
  }

  #handleFrame({ opcode, payload }: Frame): void {
    if (this.#ended) return;
    switch (opcode) {
      case OPCODES.ping:
        this.#send(OPCODES.pong, payload);
        if (this.#connection.writableLength > MAX_UNREAD_BYTES) this.destroy();
        return;
      case OPCODES.pong:
        return;
      case OPCODES.close:
        this.#receiveClose(payload);
        return;
      default:
        if (payload.length > 0 && !this.push(payload)) this.#connection.pause();
    }
  }

  #receiveClose(payload: Buffer): void {
    const { code, reason } = parseClose(payload);
    this.#sendClose(NORMAL_CLOSE_CODES.has(code) ? CLOSE_CODES.normal : code, '');
    if (!NORMAL_CLOSE_CODES.has(code)) {
      this.destroy(new WebSocketError(code, reason === '' ? `closed with code ${code}` : reason));
      return;
    }
    this.#ended = true;
    this.push(null);
  }

  #handleDisconnect(): void {
    if (this.#ended || this.destroyed) return;
    this.#ended = true;
    // After our own close, the other side may simply disconnect.
    if (this.#closeSent) this.push(null);
    else this.destroy(new WebSocketError(CLOSE_CODES.abnormal, 'the connection broke'));
  }

  #sendClose(code: number, reason: string): void {
    if (this.#closeSent) return;
    this.#closeSent = true;
    if (!this.#connection.writable) return;
    this.#send(OPCODES.close, encodeClose(code, reason));
    this.#connection.end();
  }

  #send(opcode: Opcode, payload: Buffer, done?: (error?: Error | null) => void): void {
    const frame = encodeFrame({ opcode, fin: true, payload }, this.#masks ? newNonce().subarray(0, 4) : undefined);
    if (this.#connection.writable) this.#connection.write(frame, done);
    else done?.(new WebSocketError(CLOSE_CODES.abnormal, 'the connection is closed'));
  }
}

/** Returns 16 bytes, of which the first four are fully random. */
export function newNonce(): Buffer {
  return Buffer.from(newUid().replaceAll('-', ''), 'hex');
}

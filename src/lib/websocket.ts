/**
 * One side of a WebSocket as a stream of bytes, after the handshake: what is written goes out as binary messages, what
 * is read are the payloads of the messages that come. Pings are answered, a close of the other side is an end; one that
 * tells of a fault, or a connection that breaks, is a WebSocketError.
 */
import { Duplex } from 'node:stream';
import { newUid } from '#lib/ids.ts';
import {
  CLOSE,
  closePayload,
  encodeFrame,
  FrameReader,
  OPCODES,
  readClose,
  WebSocketError,
  type Frame,
  type Opcode,
} from '#lib/websocket-frames.ts';

export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** What is written at once goes out in messages of this size: others have limits too. The largest datagram is one. */
const MESSAGE_BYTES = 64 * 1024;
/** Answers to pings that the other side does not read. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** For the other side to see our close, before the connection is cut. */
const LINGER_MS = 5000;
/** Codes with which a connection ends as it should: normal, going away, no code. */
const GOOD_ENDS: ReadonlySet<number> = new Set([1000, 1001, 1005]);

export interface WebSocketOptions {
  readonly role: 'server' | 'client';
  /** What was read from the connection after the handshake. */
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
    connection.on('error', () => this.#broken());
    connection.once('end', () => this.#broken());
    connection.once('close', () => this.#broken());
    if (head !== undefined && head.length > 0) this.#receive(head);
    if (connection.destroyed) this.#broken();
  }

  /** Ends it and tells the other side why. A repeated call does nothing. */
  close(code: number, reason: string): void {
    this.#sendClose(code, reason);
    this.destroy();
  }

  override _read(): void {
    this.#connection.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#closeSent) {
      done(new WebSocketError(CLOSE.abnormal, 'the connection is closed'));
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
    this.#sendClose(CLOSE.normal, '');
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error !== null) this.#sendClose(CLOSE.internal, '');
    else this.#sendClose(CLOSE.normal, '');
    // It is still read, so that the other side's own close does not turn into a reset of the connection.
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
      for (const frame of this.#reader.push(chunk)) this.#take(frame);
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error;
      this.#sendClose(error.code, error.message);
      this.destroy(error);
    }
  }

  #take({ opcode, payload }: Frame): void {
    if (this.#ended) return;
    switch (opcode) {
      case OPCODES.ping:
        this.#send(OPCODES.pong, payload);
        if (this.#connection.writableLength > MAX_UNREAD_BYTES) this.destroy();
        return;
      case OPCODES.pong:
        return;
      case OPCODES.close:
        this.#closed(payload);
        return;
      default:
        if (payload.length > 0 && !this.push(payload)) this.#connection.pause();
    }
  }

  #closed(payload: Buffer): void {
    const { code, reason } = readClose(payload);
    this.#sendClose(GOOD_ENDS.has(code) ? CLOSE.normal : code, '');
    if (!GOOD_ENDS.has(code)) {
      this.destroy(new WebSocketError(code, reason === '' ? `closed with code ${code}` : reason));
      return;
    }
    this.#ended = true;
    this.push(null);
  }

  #broken(): void {
    if (this.#ended || this.destroyed) return;
    this.#ended = true;
    // After our own close nothing more is owed to us.
    if (this.#closeSent) this.push(null);
    else this.destroy(new WebSocketError(CLOSE.abnormal, 'the connection broke'));
  }

  #sendClose(code: number, reason: string): void {
    if (this.#closeSent) return;
    this.#closeSent = true;
    if (!this.#connection.writable) return;
    this.#send(OPCODES.close, closePayload(code, reason));
    this.#connection.end();
  }

  #send(opcode: Opcode, payload: Buffer, done?: (error?: Error | null) => void): void {
    const frame = encodeFrame({ opcode, fin: true, payload }, this.#masks ? nonce().subarray(0, 4) : undefined);
    if (this.#connection.writable) this.#connection.write(frame, done);
    else done?.(new WebSocketError(CLOSE.abnormal, 'the connection is closed'));
  }
}

/** 16 bytes; the first four are as random as can be. */
export function nonce(): Buffer {
  return Buffer.from(newUid().replaceAll('-', ''), 'hex');
}

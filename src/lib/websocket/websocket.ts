/**
 * One side of an open WebSocket as a stream of bytes. Written bytes are sent as binary messages; the payloads of
 * received messages are read. A normal close by the other side ends the stream; a close with an error code and a broken
 * connection are a WebSocketError. `ws` implements the protocol; websocket-handshake.ts opens the connection.
 */
import { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { Clock } from '#lib/clock.ts';

/**
 * Larger writes are split into messages of this size, because other implementations limit it. Fits the largest
 * datagram.
 */
const MESSAGE_BYTES = 64 * 1024;
/** Time for the other side to receive our close before the connection is destroyed. */
const LINGER_MS = 5000;
/** Interval of the pings to a silent side. Shorter than the idle timeouts of common proxies. */
const PING_INTERVAL_MS = 30_000;
/** Long enough for a user who stops the output of a terminal for a while: a stopped client answers no pings. */
const SILENCE_TIMEOUT_MS = 5 * 60_000;
const MAX_REASON_BYTES = 123;

export const CLOSE_CODES = {
  ...{ normal: 1000, protocol: 1002, abnormal: 1006, internal: 1011 },
  /** From the range for private use: another client took over the session. */
  replaced: 4001,
} as const;
/** Close codes of a normal end: normal, going away, no code. */
const NORMAL_CLOSE_CODES: ReadonlySet<number> = new Set([1000, 1001, 1005]);

/** The connection failed or was closed by the other side. Has the close code; the message is the reason. */
export class WebSocketError extends Error {
  override name = 'WebSocketError';
  readonly code: number;

  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export class WebSocketStream extends Duplex {
  readonly #socket: WebSocket;
  #hasClosed = false;
  /** The callback of a write that came after the close of the other side. */
  #lateWrite: ((error: Error) => void) | undefined;

  /** Takes a WebSocket in the turn in which it opens, so that no message is lost. */
  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    socket.on('message', (message: Buffer) => {
      if (message.length > 0 && !this.destroyed && !this.push(message)) socket.pause();
    });
    // `ws` has sent the reason to the other side.
    socket.on('error', (cause) => this.destroy(new WebSocketError(CLOSE_CODES.protocol, cause.message, { cause })));
    socket.on('close', (code, reason) => this.#handleClose(code, reason.toString('utf8')));
  }

  /** Closes the connection and sends the reason to the other side, truncated if necessary. */
  close(code: number, reason: string): void {
    this.#sendClose(code, reason);
    this.destroy();
  }

  /**
   * Pings the other side while it is silent, and closes the connection if it stays silent. A side that has data to read,
   * or that waits for us to read, is not expected to answer: TCP detects that it is gone.
   */
  keepAlive(clock: Clock): void {
    const socket = this.#socket;
    let heardAtMs = clock.elapsed();
    const onSign = () => void (heardAtMs = clock.elapsed());
    for (const event of ['message', 'ping', 'pong']) socket.on(event, onSign);
    const check = () => {
      if (socket.isPaused || socket.bufferedAmount > 0) onSign();
      const silenceMs = clock.elapsed() - heardAtMs;
      if (silenceMs >= SILENCE_TIMEOUT_MS) {
        const why = `the other side sent nothing for ${SILENCE_TIMEOUT_MS / 1000} seconds`;
        this.destroy(new WebSocketError(CLOSE_CODES.abnormal, why));
        return;
      }
      if (silenceMs >= PING_INTERVAL_MS && socket.readyState === WebSocket.OPEN) socket.ping();
      cancel = clock.after(PING_INTERVAL_MS, check);
    };
    let cancel = clock.after(PING_INTERVAL_MS, check);
    this.once('close', () => cancel());
  }

  override _read(): void {
    if (this.#socket.isPaused) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    const { readyState } = this.#socket;
    // The write fails with the reason of the other side, which `ws` reports when the connection is closed.
    if (readyState === WebSocket.CLOSING) this.#lateWrite = done;
    else if (readyState === WebSocket.CLOSED) done(closedError());
    if (readyState !== WebSocket.OPEN) return;
    if (chunk.length === 0) done();
    for (let at = 0; at < chunk.length; at += MESSAGE_BYTES) {
      const isLast = at + MESSAGE_BYTES >= chunk.length;
      this.#socket.send(chunk.subarray(at, at + MESSAGE_BYTES), isLast ? done : undefined);
    }
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sendClose(CLOSE_CODES.normal, '');
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const socket = this.#socket;
    this.#sendClose(error === null ? CLOSE_CODES.normal : CLOSE_CODES.internal, '');
    // Keep reading, so that the other side's own close does not cause a connection reset.
    socket.resume();
    if (socket.readyState !== WebSocket.CLOSED) {
      const timer = setTimeout(() => socket.terminate(), LINGER_MS);
      timer.unref();
      socket.once('close', () => clearTimeout(timer));
    }
    done(error);
  }

  #handleClose(code: number, reason: string): void {
    const error = this.#closeError(code, reason);
    if (error === undefined) this.push(null);
    else this.destroy(error);
    this.#lateWrite?.(error ?? closedError());
  }

  /** Returns undefined for a normal close. */
  #closeError(code: number, reason: string): WebSocketError | undefined {
    // After our own close, the other side may simply disconnect.
    if (NORMAL_CLOSE_CODES.has(code) || (code === CLOSE_CODES.abnormal && this.#hasClosed)) return undefined;
    if (code === CLOSE_CODES.abnormal) return new WebSocketError(code, 'the connection broke');
    return new WebSocketError(code, reason === '' ? `closed with code ${code}` : reason);
  }

  #sendClose(code: number, reason: string): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#hasClosed = true;
    this.#socket.close(code, truncate(reason));
  }
}

const closedError = () => new WebSocketError(CLOSE_CODES.abnormal, 'the connection is closed');

/** Returns the beginning of the text that fits into a close frame, without a partial character. */
function truncate(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= MAX_REASON_BYTES) return reason;
  return bytes
    .subarray(0, MAX_REASON_BYTES)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
}

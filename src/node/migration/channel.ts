/**
 * Messages between two agents, as lines of JSON over a stream. Owns the limits: the length of a line, the number of unread
 * messages, and the silence after which the connection counts as lost. read-message.ts parses the messages.
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';

export const MAX_CHANNEL_MESSAGE_BYTES = 8 * 1024 * 1024;
export const KEEP_ALIVE_MS = 5000;
export const SILENCE_TIMEOUT_MS = 30_000;
/** More than either side ever sends without waiting for an answer. */
const MAX_UNREAD = 16;
/** Time that a closed channel has to send its last messages. */
const CLOSE_TIMEOUT_MS = 5000;
const KEEP_ALIVE = { type: 'still-there' } as const;

/** The connection is lost, or the other side violates the protocol. */
export class ChannelClosedError extends Error {
  override readonly name = 'ChannelClosedError';
}

interface Waiter<In> {
  resolve(message: In): void;
  reject(error: Error): void;
}

export class Channel<Out, In extends { readonly type: string }> {
  readonly #stream: Duplex;
  readonly #clock: Clock;
  readonly #read: (value: unknown) => In | undefined;
  readonly #unread: In[] = [];
  readonly #closed = new AbortController();
  #waiter: Waiter<In> | undefined;
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #stopTimers: (() => void)[] = [];

  /** `read` returns undefined for anything that is not a message. The channel owns the stream from now on. */
  constructor(stream: Duplex, { clock, read }: { clock: Clock; read: (value: unknown) => In | undefined }) {
    this.#stream = stream;
    this.#clock = clock;
    this.#read = read;
    stream.on('error', (error) => this.#setClosed(error.message));
    stream.on('close', () => this.#setClosed('it was closed'));
    stream.on('end', () => this.#setClosed('the other side closed it'));
    stream.on('data', (chunk: Buffer) => this.#onData(chunk));
    this.#restartSilenceTimer();
    this.#scheduleKeepAlive();
  }

  /** Aborted with a ChannelClosedError when the channel is closed. Messages that arrived before can still be read. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Resolves when the message is written to the stream, which does not mean that it arrives. */
  send(message: Out): Promise<void> {
    const { signal } = this.#closed;
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A destroyed stream may never call back for the last write.
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    this.#stream.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    return promise.finally(() => signal.removeEventListener('abort', stop));
  }

  /** Sends a message and ignores errors. */
  trySend(message: Out): void {
    this.send(message).catch(() => {});
  }

  /** Returns the next message. One reader at a time. Rejects when the channel is closed, or by the signal or timeout. */
  async next({ signal, timeoutMs }: { signal?: AbortSignal; timeoutMs?: number } = {}): Promise<In> {
    signal?.throwIfAborted();
    const waiting = this.#unread.shift();
    if (waiting !== undefined) return waiting;
    this.#closed.signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<In>();
    const stop = () => reject(signal?.reason as Error);
    const waiter = { resolve, reject };
    this.#waiter = waiter;
    signal?.addEventListener('abort', stop, { once: true });
    const onTimeout = () =>
      reject(new ChannelClosedError(`the other node agent did not answer for ${(timeoutMs ?? 0) / 1000} seconds`));
    const stopTimer = timeoutMs === undefined ? () => {} : this.#clock.after(timeoutMs, onTimeout);
    try {
      return await promise;
    } finally {
      stopTimer();
      signal?.removeEventListener('abort', stop);
      if (this.#waiter === waiter) this.#waiter = undefined;
    }
  }

  /** Closes the channel after the pending messages are sent. */
  close(): void {
    this.#setClosed('it was closed');
    if (this.#stream.destroyed) return;
    const destroy = () => this.#stream.destroy();
    this.#stream.once('close', this.#clock.after(CLOSE_TIMEOUT_MS, destroy));
    this.#stream.end(destroy);
  }

  #onData(chunk: Buffer): void {
    this.#restartSilenceTimer();
    let rest = chunk;
    for (let at = rest.indexOf(0x0a); at >= 0 && !this.#closed.signal.aborted; at = rest.indexOf(0x0a)) {
      this.#buffer(rest.subarray(0, at));
      const line = Buffer.concat(this.#pieces);
      this.#pieces = [];
      this.#pieceBytes = 0;
      this.#onLine(line);
      rest = rest.subarray(at + 1);
    }
    this.#buffer(rest);
  }

  #buffer(piece: Buffer): void {
    this.#pieceBytes += piece.length;
    if (this.#pieceBytes > MAX_CHANNEL_MESSAGE_BYTES) this.#destroy('the other side sent a message that is too long');
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #onLine(line: Buffer): void {
    if (this.#closed.signal.aborted) return;
    const message = this.#parse(line);
    if (message === undefined) return this.#destroy('the other side sent an invalid message');
    if (message.type === KEEP_ALIVE.type) return;
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) waiter.resolve(message);
    else if (this.#unread.push(message) > MAX_UNREAD) this.#destroy('the other side sent too many messages');
  }

  #parse(line: Buffer): In | undefined {
    try {
      return this.#read(JSON.parse(line.toString('utf8')));
    } catch {
      return undefined;
    }
  }

  #restartSilenceTimer(): void {
    this.#stopTimers[0]?.();
    if (this.#closed.signal.aborted) return;
    const why = `the other side sent nothing for ${SILENCE_TIMEOUT_MS / 1000} seconds`;
    this.#stopTimers[0] = this.#clock.after(SILENCE_TIMEOUT_MS, () => this.#destroy(why));
  }

  #scheduleKeepAlive(): void {
    this.#stopTimers[1] = this.#clock.after(KEEP_ALIVE_MS, () => {
      if (this.#closed.signal.aborted) return;
      this.#stream.write(`${JSON.stringify(KEEP_ALIVE)}\n`);
      this.#scheduleKeepAlive();
    });
  }

  #destroy(why: string): void {
    this.#setClosed(why);
    this.#stream.destroy();
  }

  #setClosed(why: string): void {
    if (this.#closed.signal.aborted) return;
    this.#stopAll();
    this.#pieces = [];
    const error = new ChannelClosedError(`the connection to the other node agent was lost: ${why}`);
    this.#closed.abort(error);
    this.#waiter?.reject(error);
  }

  #stopAll(): void {
    for (const stop of this.#stopTimers) stop();
    this.#stopTimers = [];
  }
}

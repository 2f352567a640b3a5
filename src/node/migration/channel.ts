/**
 * Lines of JSON over a stream between two agents. Owns the bounds: how long a line is, how much may lie unread, and how
 * long silence lasts until nobody is there. What a line means is up to whoever reads it (read-message.ts).
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';

export const MAX_LINE_BYTES = 8 * 1024 * 1024;
export const STILL_THERE_MS = 5000;
export const SILENCE_MS = 30_000;
/** Neither side ever has more to say before it hears something. */
const MAX_UNREAD = 16;
/** What was said last gets this long to be taken. */
const CLOSING_MS = 5000;
const STILL_THERE = { type: 'still-there' } as const;

/** The other side is not there any more, or what it says makes no sense. */
export class ChannelGone extends Error {
  override readonly name = 'ChannelGone';
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
  readonly #gone = new AbortController();
  #waiter: Waiter<In> | undefined;
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #stopTimers: (() => void)[] = [];

  /** `read`: undefined for what is no message. The stream is the channel's from now on. */
  constructor(stream: Duplex, { clock, read }: { clock: Clock; read: (value: unknown) => In | undefined }) {
    this.#stream = stream;
    this.#clock = clock;
    this.#read = read;
    stream.on('error', (error) => this.#end(`the connection broke: ${error.message}`));
    stream.on('close', () => this.#end('the connection was closed'));
    stream.on('end', () => this.#end('the other side has closed the connection'));
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#awaitWord();
    this.#speak();
  }

  /** Aborted, with a ChannelGone, when nothing more comes. What came before can still be read. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves when it is on its way; that says nothing about whether it arrives. */
  send(message: Out): Promise<void> {
    const { signal } = this.#gone;
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A stream that is destroyed need not say what became of the last that was written.
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    this.#stream.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    return promise.finally(() => signal.removeEventListener('abort', stop));
  }

  /** For what needs not arrive. */
  say(message: Out): void {
    this.send(message).catch(() => {});
  }

  /** What the other side says next. One reader at a time; rejects when it is gone, or by the signal. */
  async next({ signal, timeoutMs }: { signal?: AbortSignal; timeoutMs?: number } = {}): Promise<In> {
    signal?.throwIfAborted();
    const waiting = this.#unread.shift();
    if (waiting !== undefined) return waiting;
    this.#gone.signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<In>();
    const stop = () => reject(signal?.reason as Error);
    const waiter = { resolve, reject };
    this.#waiter = waiter;
    signal?.addEventListener('abort', stop, { once: true });
    const late = () => reject(new ChannelGone(`the other side said nothing for ${(timeoutMs ?? 0) / 1000} seconds`));
    const stopTimer = timeoutMs === undefined ? () => {} : this.#clock.after(timeoutMs, late);
    try {
      return await promise;
    } finally {
      stopTimer();
      signal?.removeEventListener('abort', stop);
      if (this.#waiter === waiter) this.#waiter = undefined;
    }
  }

  /** What was sent still goes out. */
  close(): void {
    this.#end('the connection was closed');
    if (this.#stream.destroyed) return;
    const destroy = () => this.#stream.destroy();
    this.#stream.once('close', this.#clock.after(CLOSING_MS, destroy));
    this.#stream.end(destroy);
  }

  #take(chunk: Buffer): void {
    this.#awaitWord();
    let rest = chunk;
    for (let at = rest.indexOf(0x0a); at >= 0 && !this.#gone.signal.aborted; at = rest.indexOf(0x0a)) {
      this.#keep(rest.subarray(0, at));
      const line = Buffer.concat(this.#pieces);
      this.#pieces = [];
      this.#pieceBytes = 0;
      this.#hear(line);
      rest = rest.subarray(at + 1);
    }
    this.#keep(rest);
  }

  #keep(piece: Buffer): void {
    this.#pieceBytes += piece.length;
    if (this.#pieceBytes > MAX_LINE_BYTES) this.#break('a line is too long');
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #hear(line: Buffer): void {
    if (this.#gone.signal.aborted) return;
    const message = this.#parse(line);
    if (message === undefined) return this.#break('the other side said what makes no sense');
    if (message.type === STILL_THERE.type) return;
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) waiter.resolve(message);
    else if (this.#unread.push(message) > MAX_UNREAD) this.#break('the other side says too much');
  }

  #parse(line: Buffer): In | undefined {
    try {
      return this.#read(JSON.parse(line.toString('utf8')));
    } catch {
      return undefined;
    }
  }

  #awaitWord(): void {
    this.#stopTimers[0]?.();
    if (this.#gone.signal.aborted) return;
    this.#stopTimers[0] = this.#clock.after(SILENCE_MS, () => this.#break('nothing was heard of the other side'));
  }

  #speak(): void {
    this.#stopTimers[1] = this.#clock.after(STILL_THERE_MS, () => {
      if (this.#gone.signal.aborted) return;
      this.#stream.write(`${JSON.stringify(STILL_THERE)}\n`);
      this.#speak();
    });
  }

  #break(why: string): void {
    this.#end(why);
    this.#stream.destroy();
  }

  #end(why: string): void {
    if (this.#gone.signal.aborted) return;
    this.#stopAll();
    this.#pieces = [];
    const error = new ChannelGone(`Cannot go on: ${why}`);
    this.#gone.abort(error);
    this.#waiter?.reject(error);
  }

  #stopAll(): void {
    for (const stop of this.#stopTimers) stop();
    this.#stopTimers = [];
  }
}

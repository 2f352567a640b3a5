/** The bytes of one watch in transit: what was sent, what was read, and how it broke. */
import { TransportError } from '#client/transport.ts';

/** `reset` loses what was sent but not read yet. After `silence` the connection stays open, but nothing arrives. */
export type Break = 'reset' | 'inside a line' | 'end' | 'silence';

export class FakeStream implements AsyncIterable<Buffer> {
  #chunks: Buffer[] = [];
  #finished: 'no' | 'ended' | 'reset' = 'no';
  #silent = false;
  #wake: (() => void) | undefined;
  onClose: (() => void) | undefined;

  line(value: unknown): void {
    if (this.#silent) return;
    const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
    // In two chunks, so that no reader can treat a chunk as a line.
    const middle = bytes.length >> 1;
    this.#chunks.push(bytes.subarray(0, middle), bytes.subarray(middle));
    this.#wake?.();
  }

  end(): void {
    this.#finished = 'ended';
    this.#wake?.();
  }

  break(how: Break): void {
    if (how === 'silence') {
      this.#silent = true;
      return;
    }
    if (how === 'reset') this.#chunks = [];
    if (how === 'inside a line')
      this.#chunks.push(Buffer.from('{"type":"ADDED","object":{"metadata":{"resourceVersion":"9'));
    this.#finished = how === 'end' ? 'ended' : 'reset';
    this.#wake?.();
  }

  async *read(signal: AbortSignal | undefined): AsyncGenerator<Buffer, void, undefined> {
    const onAbort = (): void => this.#wake?.();
    signal?.addEventListener('abort', onAbort);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) yield chunk;
        else if (this.#finished === 'ended') return;
        else if (this.#finished === 'reset') throw new TransportError('read ECONNRESET');
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.onClose?.();
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    return this.read(undefined);
  }
}

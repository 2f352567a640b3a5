/** One line that tells how far something is: written over again on a terminal, else told now and then. */
import type { Clock } from '#lib/clock.ts';

const TELL_EVERY_MS = 5000;

/** A stream that may be a terminal. */
export type MaybeTerminal = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export class ProgressLine {
  readonly #stream: MaybeTerminal;
  readonly #clock: Clock;
  #shown = '';
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(stream: MaybeTerminal, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  show(line: string): void {
    if (line === this.#shown) return;
    if (this.#stream.isTTY === true) {
      this.#shown = line;
      // A line that wraps could not be written over. Some terminals do not know their width, and say 0.
      this.#stream.write(`\r\u001b[K${line.slice(0, (this.#stream.columns || 80) - 1)}`);
      return;
    }
    const nowMs = this.#clock.elapsed();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    this.#shown = line;
    this.#toldAtMs = nowMs;
    this.#stream.write(`${line}\n`);
  }

  /** The last of them stays, whole; nothing may be shown after. */
  end(line: string): void {
    const { isTTY } = this.#stream;
    if (isTTY === true) this.#stream.write(`\r\u001b[K${line}\n`);
    else if (line !== this.#shown) this.#stream.write(`${line}\n`);
  }
}

/** A progress line: overwritten on a terminal, otherwise printed at intervals. */
import type { Clock } from '#lib/clock.ts';

const PRINT_INTERVAL_MS = 5000;

/** A stream that may be a terminal. */
export type MaybeTerminal = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export class ProgressLine {
  readonly #stream: MaybeTerminal;
  readonly #clock: Clock;
  #shown = '';
  #printedAtMs = Number.NEGATIVE_INFINITY;

  constructor(stream: MaybeTerminal, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  show(line: string): void {
    if (line === this.#shown) return;
    if (this.#stream.isTTY === true) {
      this.#shown = line;
      // A wrapped line could not be overwritten. Some terminals report a width of 0.
      this.#stream.write(`\r\u001b[K${line.slice(0, (this.#stream.columns || 80) - 1)}`);
      return;
    }
    const nowMs = this.#clock.elapsed();
    if (nowMs - this.#printedAtMs < PRINT_INTERVAL_MS) return;
    this.#shown = line;
    this.#printedAtMs = nowMs;
    this.#stream.write(`${line}\n`);
  }

  /** Prints the final line in full. Nothing may be shown afterwards. */
  end(line: string): void {
    const { isTTY } = this.#stream;
    if (isTTY === true) this.#stream.write(`\r\u001b[K${line}\n`);
    else if (line !== this.#shown) this.#stream.write(`${line}\n`);
  }
}

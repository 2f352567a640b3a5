/**
 * Truncates the logs of running processes: a guest can make its QEMU log errors forever. The logs are opened for
 * appending, so truncating them from outside is safe.
 */
import { stat, truncate } from 'node:fs/promises';
import type { Clock } from '#lib/clock.ts';

const INTERVAL_MS = 60_000;
const MAX_BYTES = 4 * 1024 * 1024;

export class LogTruncator {
  readonly #clock: Clock;
  readonly #paths: () => Iterable<string>;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, paths: () => Iterable<string>) {
    this.#clock = clock;
    this.#paths = paths;
  }

  start(): void {
    this.#cancel ??= this.#schedule();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = () => undefined;
  }

  #schedule(): () => void {
    return this.#clock.after(INTERVAL_MS, () => void this.#truncateLogs());
  }

  async #truncateLogs(): Promise<void> {
    const before = this.#cancel;
    for (const path of this.#paths()) {
      // A missing log was removed with its domain just now.
      const size = await stat(path).then(
        (stats) => stats.size,
        () => 0,
      );
      if (size > MAX_BYTES) await truncate(path).catch(() => undefined);
    }
    if (this.#cancel === before) this.#cancel = this.#schedule();
  }
}

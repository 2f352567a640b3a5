/**
 * A journal in memory. A second LogStore on the same
 * instance sees what it would see after a restart.
 */
import type { Journal, LogRecord } from '#engine/store/journal.ts';
import { StoreUnavailableError } from '#engine/store/store.ts';

export class MemoryJournal implements Journal {
  readonly name = 'memory';
  isSpaceScarce = false;
  readonly #records = new Map<number, LogRecord>();
  #compactedRevision = 0;
  #fault: string | undefined;

  /** Makes every append and compact fail with this message; undefined makes them succeed again. */
  failWith(message: string | undefined): void {
    this.#fault = message;
  }

  async open(): Promise<{ compactedRevision: number }> {
    await nextTurn();
    return { compactedRevision: this.#compactedRevision };
  }

  async *records(): AsyncIterable<readonly LogRecord[]> {
    await nextTurn();
    yield [...this.#records.values()];
  }

  async append(batch: readonly LogRecord[]): Promise<void> {
    await nextTurn();
    this.#throwFault();
    for (const { type, entry } of batch) this.#records.set(entry.revision, { type, entry });
  }

  async compact(revision: number, removable: readonly number[]): Promise<void> {
    await nextTurn();
    this.#throwFault();
    this.#compactedRevision = revision;
    for (const old of removable) this.#records.delete(old);
  }

  async close(): Promise<void> {
    await nextTurn();
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw new StoreUnavailableError(`Cannot write to memory: ${this.#fault}`);
  }
}

/** Never completes within the turn that called it, like a disk. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

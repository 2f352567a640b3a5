/**
 * A journal without a disk: for tests and for planes that need not outlive their process. A second LogStore opened on
 * the same value sees what a restart would see.
 */
import type { Journal, LogRecord } from '../journal.ts';
import { StoreUnavailableError } from '../store.ts';

export class MemoryJournal implements Journal {
  readonly name = 'memory';
  readonly #records = new Map<number, LogRecord>();
  #compactedRevision = 0;
  #fault: string | undefined;

  /** Every append and compact fails from now on with this message; undefined makes them work again. */
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

/** As a disk would: never within the turn that asked. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

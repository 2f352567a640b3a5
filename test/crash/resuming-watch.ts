/** A watcher that survives kills of the server: after each lost connection it resumes from the last revision it has seen. */
import assert from 'node:assert/strict';
import type { Client } from '#client/client.ts';
import type { Ledger } from '#test/crash/ledger.ts';
import { tokenOf } from '#test/crash/tickets.ts';
import { TransportError } from '#client/transport.ts';
import type { ResourceType } from '#kube/meta.ts';

export interface Seen {
  readonly type: string;
  readonly name: string;
  readonly token: string;
  readonly revision: number;
}

export interface ResumingWatchOptions {
  readonly client: Client;
  readonly type: ResourceType;
  readonly namespace: string;
  readonly since: string;
  readonly ledger: Ledger;
  readonly signal: AbortSignal;
}

export class ResumingWatch {
  readonly seen: Seen[] = [];
  readonly type: ResourceType;
  /** Resolves when the signal aborts; rejects with any error except a lost connection. */
  readonly finished: Promise<void>;
  readonly #options: ResumingWatchOptions;
  readonly #waiting: { name: string; resolve: () => void }[] = [];
  #last: string;
  resumed = 0;

  /** `up` resolves when the server can be reached: at once, or after the restart. */
  constructor(options: ResumingWatchOptions, up: () => Promise<void>) {
    this.#options = options;
    this.#last = options.since;
    this.type = options.type;
    this.finished = this.#run(up);
    // Tests check it at the end; until then it must not be an unhandled rejection.
    this.finished.catch(() => {});
  }

  /** Resolves when an event of this object was seen. */
  async waitFor(name: string): Promise<void> {
    if (this.seen.some((event) => event.name === name)) return;
    await Promise.race([
      new Promise<void>((resolve) => this.#waiting.push({ name, resolve })),
      this.finished.then(() => assert.fail('the watch ended')),
    ]);
  }

  async #run(up: () => Promise<void>): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      await up();
      try {
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TransportError)) throw error;
      }
      this.resumed++;
      // The other side of a broken connection may still exist; let other tasks run first.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #watch(): Promise<void> {
    const { client, type, namespace, ledger, signal } = this.#options;
    const resourceVersion = this.#last;
    for await (const { type: event, object } of client.watch(type, { namespace, resourceVersion, signal })) {
      const revision = ledger.note(type, object, event === 'DELETED');
      const { name } = object.metadata;
      this.seen.push({ type: event, name, token: tokenOf(object), revision });
      this.#last = object.metadata.resourceVersion;
      for (const waiter of this.#waiting) if (waiter.name === name) waiter.resolve();
    }
  }
}

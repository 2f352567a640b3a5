/**
 * Freezes and thaws the file systems of a guest through its agent. A guest that cannot write soon hangs, so a freeze
 * never stays: its record is on disk before the guest is frozen, a timer thaws the guest after the timeout, and if this
 * node agent dies, the next one thaws it.
 */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import {
  GuestAgentError,
  type AgentCommand,
  type AskAgentOptions,
  type FreezeOptions,
} from '#node/hypervisor/guest-access.ts';

/** Freezing flushes everything that the guest has in its caches. */
const FREEZE_MS = 30_000;
const THAW_MS = 10_000;
const THAW_RETRY_MS = 5000;

export interface FreezeRecord {
  readonly untilMs: number;
  readonly why: FreezeOptions['why'];
}

interface GuestFreezeOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly askAgent: (command: AgentCommand, options: AskAgentOptions) => Promise<unknown>;
  readonly readRecord: () => FreezeRecord | undefined;
  readonly writeRecord: (record: FreezeRecord | undefined) => Promise<void>;
  readonly hasEnded: () => boolean;
}

export class GuestFreeze {
  readonly #options: GuestFreezeOptions;
  #cancelTimer: (() => void) | undefined;
  /** Serializes the timer's thaw with requests for a longer freeze. */
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: GuestFreezeOptions) {
    this.#options = options;
  }

  get untilMs(): number | undefined {
    return this.#options.hasEnded() ? undefined : this.#options.readRecord()?.untilMs;
  }

  freeze(options: FreezeOptions): Promise<void> {
    return this.#enqueue(() => this.#freeze(options));
  }

  thaw(): Promise<void> {
    return this.#enqueue(() => this.#thaw());
  }

  async #freeze({ timeoutMs, why }: FreezeOptions): Promise<void> {
    const { clock, askAgent, readRecord, writeRecord } = this.#options;
    const isFrozen = readRecord() !== undefined;
    // Without an agent nothing must be frozen, and no command may stay queued for an agent that starts later.
    if (!isFrozen) await askAgent({ execute: 'guest-ping' }, {});
    await writeRecord({ untilMs: clock.now() + timeoutMs, why });
    this.#scheduleThaw(timeoutMs);
    if (isFrozen) return;
    try {
      await askAgent({ execute: 'guest-fsfreeze-freeze' }, { timeoutMs: FREEZE_MS });
    } catch (error) {
      // The guest may be frozen, wholly or in part, although the answer was late.
      await this.#thaw().catch(() => undefined);
      throw error;
    }
  }

  async #thaw(): Promise<void> {
    const { askAgent, readRecord, writeRecord } = this.#options;
    if (readRecord() === undefined) return;
    try {
      await askAgent({ execute: 'guest-fsfreeze-thaw' }, { timeoutMs: THAW_MS });
    } catch (error) {
      // An agent that has nothing frozen refuses to thaw.
      if (!(error instanceof GuestAgentError && error.reason === 'Refused')) {
        this.#scheduleThaw(THAW_RETRY_MS);
        throw error;
      }
    }
    this.#cancelTimer?.();
    await writeRecord(undefined);
  }

  /** Handles a freeze that an earlier node agent, or a lost connection, has left behind. */
  async reconcile(): Promise<void> {
    const { clock, readRecord } = this.#options;
    const record = readRecord();
    if (record === undefined) return;
    if (record.why === 'snapshot' || record.untilMs <= clock.now()) await this.thaw().catch(() => undefined);
    else this.#scheduleThaw(record.untilMs - clock.now());
  }

  /** Removes the record after the guest was restarted, because a restarted guest is not frozen. */
  async clearRecord(): Promise<void> {
    this.#cancelTimer?.();
    if (this.#options.readRecord() !== undefined) await this.#options.writeRecord(undefined);
  }

  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  #scheduleThaw(inMs: number): void {
    const { clock, log, hasEnded } = this.#options;
    this.#cancelTimer?.();
    if (this.#closed) return;
    this.#cancelTimer = clock.after(inMs, () => {
      if (this.#closed || hasEnded()) return;
      this.thaw().catch((err: unknown) => log.warn({ err }, 'Cannot thaw the file systems of a guest; retrying'));
    });
  }
}

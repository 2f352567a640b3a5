/**
 * Freezes and thaws the file systems of a guest through its agent. A guest that cannot write soon hangs, so a freeze
 * never stays: its record is on disk before the guest is frozen, a timer thaws the guest after the timeout, and if this
 * node agent dies, the next one thaws it.
 */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions, type FreezeOptions } from './guest-lines.ts';

/** Freezing flushes everything that the guest has in its caches. */
const FREEZE_MS = 30_000;
const THAW_MS = 10_000;
const THAW_AGAIN_MS = 5000;

export interface FreezeRecord {
  readonly untilMs: number;
  readonly why: FreezeOptions['why'];
}

export interface GuestFreezeOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly ask: (command: AgentCommand, options: AskAgentOptions) => Promise<unknown>;
  readonly record: () => FreezeRecord | undefined;
  readonly write: (record: FreezeRecord | undefined) => Promise<void>;
  readonly hasEnded: () => boolean;
}

export class GuestFreeze {
  readonly #options: GuestFreezeOptions;
  #cancel: (() => void) | undefined;
  /** Serialises the timer's thaw with requests for a longer freeze. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: GuestFreezeOptions) {
    this.#options = options;
  }

  get untilMs(): number | undefined {
    return this.#options.hasEnded() ? undefined : this.#options.record()?.untilMs;
  }

  freeze(options: FreezeOptions): Promise<void> {
    return this.#inTurn(() => this.#freeze(options));
  }

  thaw(): Promise<void> {
    return this.#inTurn(() => this.#thaw());
  }

  async #freeze({ timeoutMs, why }: FreezeOptions): Promise<void> {
    const { clock, ask, record, write } = this.#options;
    const isFrozen = record() !== undefined;
    // Without an agent nothing must be frozen, and no command may stay queued for an agent that starts later.
    if (!isFrozen) await ask({ execute: 'guest-ping' }, {});
    await write({ untilMs: clock.now() + timeoutMs, why });
    this.#thawAt(timeoutMs);
    if (isFrozen) return;
    try {
      await ask({ execute: 'guest-fsfreeze-freeze' }, { timeoutMs: FREEZE_MS });
    } catch (error) {
      // The guest may be frozen, wholly or in part, although the answer was late.
      await this.#thaw().catch(() => undefined);
      throw error;
    }
  }

  async #thaw(): Promise<void> {
    const { ask, record, write } = this.#options;
    if (record() === undefined) return;
    try {
      await ask({ execute: 'guest-fsfreeze-thaw' }, { timeoutMs: THAW_MS });
    } catch (error) {
      // An agent that has nothing frozen refuses to thaw.
      if (!(error instanceof GuestAgentError && error.fault === 'Refused')) {
        this.#thawAt(THAW_AGAIN_MS);
        throw error;
      }
    }
    this.#cancel?.();
    await write(undefined);
  }

  /** Handles a freeze that an earlier node agent, or a lost connection, has left behind. */
  async settle(): Promise<void> {
    const { clock, record } = this.#options;
    const left = record();
    if (left === undefined) return;
    if (left.why === 'snapshot' || left.untilMs <= clock.now()) await this.thaw().catch(() => undefined);
    else this.#thawAt(left.untilMs - clock.now());
  }

  /** Removes the record after the guest was restarted, because a restarted guest is not frozen. */
  async forget(): Promise<void> {
    this.#cancel?.();
    if (this.#options.record() !== undefined) await this.#options.write(undefined);
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #thawAt(inMs: number): void {
    const { clock, log, hasEnded } = this.#options;
    this.#cancel?.();
    if (this.#closed) return;
    this.#cancel = clock.after(inMs, () => {
      if (this.#closed || hasEnded()) return;
      this.thaw().catch((err: unknown) => log.warn({ err }, 'cannot thaw the file systems of a guest; retrying'));
    });
  }
}

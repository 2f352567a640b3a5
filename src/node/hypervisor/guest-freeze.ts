/**
 * The file systems of a guest, frozen and thawed by its agent. A guest that cannot write stands still sooner or later,
 * so it is never left so: what is about to be frozen is on disk before, thawed when its time is over, and by the next
 * agent of the node where this one dies in between.
 */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions, type FreezeOptions } from './guest-lines.ts';

/** A guest writes down all that it has before it is frozen. */
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
  /** A clock that thaws and somebody who wants it frozen for longer do not get in each other's way. */
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
    // Where nobody answers, nothing is frozen, and nothing is said that might be heard later.
    if (!isFrozen) await ask({ execute: 'guest-ping' }, {});
    await write({ untilMs: clock.now() + timeoutMs, why });
    this.#thawAt(timeoutMs);
    if (isFrozen) return;
    try {
      await ask({ execute: 'guest-fsfreeze-freeze' }, { timeoutMs: FREEZE_MS });
    } catch (error) {
      // It may have been frozen, in part or all of it, and only have said so too late.
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
      // An agent that never froze anything says no to it, and has nothing frozen.
      if (!(error instanceof GuestAgentError && error.fault === 'Refused')) {
        this.#thawAt(THAW_AGAIN_MS);
        throw error;
      }
    }
    this.#cancel?.();
    await write(undefined);
  }

  /** For what an earlier agent, or a lost line, has left. */
  async settle(): Promise<void> {
    const { clock, record } = this.#options;
    const left = record();
    if (left === undefined) return;
    if (left.why === 'snapshot' || left.untilMs <= clock.now()) await this.thaw().catch(() => undefined);
    else this.#thawAt(left.untilMs - clock.now());
  }

  /** The guest has begun anew: nothing is frozen. */
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
      this.thaw().catch((err: unknown) => log.warn({ err }, 'cannot thaw a guest; trying again'));
    });
  }
}

/**
 * The agent's notes about guests that are being started or stopped; running guests need none. They are kept in memory only:
 * a new agent starts over. Times are those of Clock.elapsed.
 */
import { backoffMs } from '#lib/backoff.ts';

/** The result of the last unsuccessful attempt to start; kept until the domain runs or its pod is gone. */
export type StartAttempt =
  | {
      readonly is: 'waiting';
      readonly reason: string;
      readonly message: string;
      readonly tries: number;
      /** Time of the next attempt. */
      readonly dueAtMs: number;
    }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string };

/** The state of a shutdown: when it began, and when the power button was pressed last. */
export interface StopState {
  readonly sinceMs: number;
  readonly pressedAtMs?: number;
}

/** Starts short, because a claim is usually bound within moments. */
const BACKOFF = { firstMs: 50, maxMs: 10_000 };

interface Note {
  attempt?: StartAttempt;
  stop?: StopState;
}

export class DomainNotes {
  readonly #notes = new Map<string, Note>();

  get(id: string): Readonly<Note> {
    return this.#notes.get(id) ?? {};
  }

  recordFailure(id: string, reason: string, message: string): void {
    this.#note(id).attempt = { is: 'failed', reason, message };
  }

  recordWaiting(id: string, reason: string, message: string, elapsedMs: number): void {
    const note = this.#note(id);
    const tries = (note.attempt?.is === 'waiting' ? note.attempt.tries : 0) + 1;
    note.attempt = { is: 'waiting', reason, message, tries, dueAtMs: elapsedMs + backoffMs(tries, BACKOFF) };
  }

  recordStart(id: string): void {
    this.forget(id);
  }

  /** Starts the grace period, unless it has started. */
  recordStopBegin(id: string, elapsedMs: number): void {
    this.#note(id).stop ??= { sinceMs: elapsedMs };
  }

  recordPowerButton(id: string, elapsedMs: number): void {
    const note = this.#note(id);
    note.stop = { sinceMs: note.stop?.sinceMs ?? elapsedMs, pressedAtMs: elapsedMs };
  }

  forget(id: string): void {
    this.#notes.delete(id);
  }

  #note(id: string): Note {
    let note = this.#notes.get(id);
    if (note === undefined) this.#notes.set(id, (note = {}));
    return note;
  }
}

/**
 * What the agent remembers of guests beside the objects: only of those that are being started or stopped, so that thousands
 * that just run cost nothing. All of it may be forgotten: a new agent finds out again. Times are those of Clock.elapsed.
 */
import { backoffMs } from '#lib/backoff.ts';
import type { Attempt, Stopping } from '#node/domains/domain-action.ts';

/** The first are short: a claim is bound in a moment. */
const BACKOFF = { firstMs: 50, maxMs: 10_000 };

interface Note {
  attempt?: Attempt;
  stopping?: Stopping;
}

export class DomainNotes {
  readonly #notes = new Map<string, Note>();

  get(id: string): Readonly<Note> {
    return this.#notes.get(id) ?? {};
  }

  failed(id: string, reason: string, message: string): void {
    this.#note(id).attempt = { is: 'failed', reason, message };
  }

  waiting(id: string, reason: string, message: string, elapsedMs: number): void {
    const note = this.#note(id);
    const tries = (note.attempt?.is === 'waiting' ? note.attempt.tries : 0) + 1;
    note.attempt = { is: 'waiting', reason, message, tries, dueAtMs: elapsedMs + backoffMs(tries, BACKOFF) };
  }

  started(id: string): void {
    this.forget(id);
  }

  /** The guest is asked to go from now on. */
  stopBegins(id: string, elapsedMs: number): void {
    this.#note(id).stopping ??= { sinceMs: elapsedMs };
  }

  pressed(id: string, elapsedMs: number): void {
    const note = this.#note(id);
    note.stopping = { sinceMs: note.stopping?.sinceMs ?? elapsedMs, pressedAtMs: elapsedMs };
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

/**
 * Deleting a lot, a plan at a time. Some of it may be refused, again and again: by policies, webhooks, protection. So
 * that this keeps nothing else from being deleted, plans go through everything in rounds:
 *
 *   from the beginning ──► what comes after the last plan ──► … ──► the end is seen: what was refused is known
 *          ▲                                                            │
 *          └────────── after a time, longer while nothing goes ◄────────┘
 *
 * Nothing is lost with what is remembered here but time.
 */
import { isStale, textOf } from '#runtime/apply.ts';
import type { Change, Failure } from '#runtime/plan.ts';
import { backoffMs } from '#lib/backoff.ts';

/** Where a plan ended. */
export interface Place {
  /** The kind's collection. */
  readonly kind: string;
  readonly key: string;
}

export interface Round {
  /** What comes after it is in turn; absent for everything. */
  readonly after: Place | undefined;
  /** Looks that saw everything and found as much as the one before. */
  readonly quiet: number;
}

/** What a look has found. */
export interface Look {
  readonly count: number;
  readonly complete: boolean;
  /** The last that is to be deleted now. */
  readonly last: Place | undefined;
}

interface State extends Round {
  readonly uid: string;
  /** At the end of the last round. */
  readonly count: number | undefined;
  /** Of this round, by what the refusals are told by. */
  readonly refused: Map<string, string>;
}

/** Between plans of a round. */
const NEXT_PLAN_MS = 100;
/** The longest is what Kubernetes allows finalizers. */
const NEXT_ROUND = { firstMs: 500, maxMs: 15_000 };
/** How many refusals are told. */
const MAX_REFUSED = 100;

export function lookAgainMs({ complete, quiet }: { readonly complete: boolean; readonly quiet: number }): number {
  return complete ? backoffMs(quiet + 1, NEXT_ROUND) : NEXT_PLAN_MS;
}

export class DeletionRounds {
  readonly #states = new Map<string, State>();
  readonly #toldBy: (change: Change) => string;

  /** `toldBy`: of refusals that agree in it only the first is told. */
  constructor(toldBy: (change: Change) => string) {
    this.#toldBy = toldBy;
  }

  /** The round of what is being deleted under this key; of another object of the same name nothing is known. */
  of(key: string, uid: string): Round {
    const state = this.#states.get(key);
    return state?.uid === uid ? state : NEW;
  }

  /** After each look; gives the round as it is then. */
  looked(key: string, uid: string, { count, complete, last }: Look): Round {
    const before = this.#states.get(key);
    const known = before?.uid === uid ? before : undefined;
    const refused = known?.after === undefined ? new Map<string, string>() : known.refused;
    const state: State = complete
      ? { uid, after: undefined, quiet: known?.count === count ? known.quiet + 1 : 0, count, refused }
      : { uid, after: last, quiet: known?.quiet ?? 0, count: known?.count, refused };
    this.#states.set(key, state);
    return state;
  }

  /** After each plan; gives all that was refused in this round so far. */
  learn(key: string, failures: readonly Failure[]): readonly string[] {
    const refused = this.#states.get(key)?.refused ?? new Map<string, string>();
    for (const { change, error } of failures) {
      const about = this.#toldBy(change);
      // What was decided on an old state was not refused.
      if (!isStale(error) && !refused.has(about) && refused.size < MAX_REFUSED) refused.set(about, textOf(error));
    }
    return [...refused.values()].sort();
  }

  forget(key: string): void {
    this.#states.delete(key);
  }
}

const NEW: Round = { after: undefined, quiet: 0 };

/**
 * Deletes many objects, one plan at a time. Policies, webhooks or protection may refuse some of the deletions again and
 * again. So that these do not block the others, plans go through all objects in rounds:
 *
 *   from the beginning ──► objects after the last plan ──► … ──► end of the list: all refusals are known
 *          ▲                                                            │
 *          └────── after a delay, longer while nothing is deleted ◄─────┘
 *
 * The state is kept in memory only. Losing it costs time, not correctness.
 */
import { errorMessage } from '#lib/error-message.ts';
import { isStale } from '#runtime/apply.ts';
import type { Change, FailedChange } from '#runtime/plan.ts';
import { backoffMs } from '#lib/backoff.ts';

/** The last object of a plan. */
export interface DeletionCursor {
  /** The kind's collection. */
  readonly kind: string;
  readonly key: string;
}

interface DeletionRound {
  /** The next plan continues after this object; undefined = from the beginning. */
  readonly after: DeletionCursor | undefined;
  /** The number of complete rounds in a row that found as many objects as the round before. */
  readonly unchangedRounds: number;
}

/** The result of listing the objects for one plan. */
interface RoundObservation {
  readonly count: number;
  readonly complete: boolean;
  /** The last object that the plan deletes. */
  readonly last: DeletionCursor | undefined;
}

interface RoundState extends DeletionRound {
  readonly uid: string;
  /** The number of objects at the end of the last round. */
  readonly count: number | undefined;
  /** The refusals of this round, by group. */
  readonly refused: Map<string, string>;
}

/** The delay between the plans of a round. */
const NEXT_PLAN_MS = 100;
/** The delay between rounds. The maximum is the time that Kubernetes waits for finalizers. */
const NEXT_ROUND = { firstMs: 500, maxMs: 15_000 };
/** The maximum number of refusals that are reported. */
const MAX_REFUSED = 100;

/** Returns the delay before the next plan. */
export function roundDelayMs({
  complete,
  unchangedRounds,
}: Pick<RoundObservation, 'complete'> & Pick<DeletionRound, 'unchangedRounds'>): number {
  return complete ? backoffMs(unchangedRounds + 1, NEXT_ROUND) : NEXT_PLAN_MS;
}

export class DeletionRounds {
  readonly #states = new Map<string, RoundState>();
  readonly #groupOf: (change: Change) => string;

  /** Only the first refusal of each group is reported. */
  constructor(groupOf: (change: Change) => string) {
    this.#groupOf = groupOf;
  }

  /** Returns the current round of the object that is being deleted. Another object of the same name starts a new round. */
  roundOf(key: string, uid: string): DeletionRound {
    const state = this.#states.get(key);
    return state?.uid === uid ? state : NEW_ROUND;
  }

  /** Records what was listed for a plan, and returns the updated round. */
  recordObservation(key: string, uid: string, { count, complete, last }: RoundObservation): DeletionRound {
    const before = this.#states.get(key);
    const known = before?.uid === uid ? before : undefined;
    const refused = known?.after === undefined ? new Map<string, string>() : known.refused;
    const state: RoundState = complete
      ? {
          uid,
          after: undefined,
          unchangedRounds: known?.count === count ? known.unchangedRounds + 1 : 0,
          count,
          refused,
        }
      : { uid, after: last, unchangedRounds: known?.unchangedRounds ?? 0, count: known?.count, refused };
    this.#states.set(key, state);
    return state;
  }

  /** Records the failures of a plan, and returns all refusals of this round so far. */
  recordFailures(key: string, failures: readonly FailedChange[]): readonly string[] {
    const refused = this.#states.get(key)?.refused ?? new Map<string, string>();
    for (const { change, error } of failures) {
      const group = this.#groupOf(change);
      // A conflict is not a refusal: the plan was based on an old state.
      if (!isStale(error) && !refused.has(group) && refused.size < MAX_REFUSED) refused.set(group, errorMessage(error));
    }
    return [...refused.values()].sort();
  }

  forget(key: string): void {
    this.#states.delete(key);
  }
}

const NEW_ROUND: DeletionRound = { after: undefined, unchangedRounds: 0 };

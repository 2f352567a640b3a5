/**
 * The pace of one request: work on large objects is divided into pieces, each in its own turn of the event loop, so that no
 * request delays those of other users (lib/fair-turns.ts). Small requests run in one turn.
 *
 *   step      waits for a turn of its own: a step of a request on a large object
 *   spend     charges work to the share of the user, and waits if the user has spent enough in this turn
 */
import { shareOf } from '#engine/request/user-share.ts';
import type { ApiRequest, UserInfo } from '#engine/request/request.ts';
import { SMALL_UNITS, UNITS_PER_TURN, type FairTurns } from '#lib/fair-turns.ts';
import { runAtOnce } from '#lib/run-at-once.ts';

/** Objects with more bytes are large. */
const LARGE_BYTES = SMALL_UNITS;

interface PacedRequest {
  readonly request: Pick<ApiRequest, 'body'>;
  readonly pace: Pace;
}

/** Reads the body of a request. A large one is returned in a turn of its own. */
export async function readPacedBody({ request, pace }: PacedRequest): Promise<Buffer> {
  const bytes = await request.body();
  pace.noteSize(bytes.length);
  if (pace.isLarge) await pace.step();
  return bytes;
}

/** Smaller amounts are collected, so that cheap steps need no account. */
const CHARGED_UNITS = 1024;

export class Pace {
  readonly #turns: FairTurns;
  readonly #user: UserInfo;
  #isLarge = false;
  #owed = 0;

  constructor(turns: FairTurns, user: UserInfo) {
    this.#turns = turns;
    this.#user = user;
  }

  /** Notes the size of an object that the request reads or writes. */
  noteSize(bytes: number): void {
    if (bytes > LARGE_BYTES) this.#isLarge = true;
  }

  /** True if the request works on a large object, so that each of its steps must wait for `step`. */
  get isLarge(): boolean {
    return this.#isLarge;
  }

  /** Waits for the turn of the next step. */
  step(): Promise<void> {
    return this.#turns.next(shareOf(this.#user), UNITS_PER_TURN);
  }

  /** Runs a computation, in one turn unless it works on a large object. */
  run<T>(steps: Generator<undefined, T>): T | Promise<T> {
    return this.#isLarge ? this.#runInTurns(steps) : runAtOnce(steps);
  }

  async #runInTurns<T>(steps: Generator<undefined, T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await this.step();
    }
  }

  /**
   * Charges work before it is done. Returns a promise for another turn if the requests of this user have done enough in
   * this one: 64 requests that each do a little are as expensive as one that does everything.
   */
  spend(units: number): Promise<void> | undefined {
    this.#owed += units;
    if (this.#owed < CHARGED_UNITS) return undefined;
    const [share, owed] = [shareOf(this.#user), this.#owed];
    this.#owed = 0;
    const turn = this.#turns.enter(share, owed);
    // The request was admitted before, and is not refused in the middle.
    return turn === 'full' ? this.#turns.next(share, owed) : turn;
  }
}

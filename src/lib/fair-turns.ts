/**
 * Shares the turns of the event loop between users, so that the work of one user delays the others by at most one piece.
 *
 *   enter ──► runs at once, while this turn and this user have units left
 *         ├─► waits for a later turn: small pieces in rotation between users, large pieces one at a time
 *         └─► 'full' if the user has too many pieces waiting
 *
 * Units estimate the time of a piece (see UNITS_PER_TURN). After a large piece, the next one waits for as long as this one
 * took, so that large pieces take at most half of the time and requests of several turns are served between them.
 */
import { systemClock } from '#lib/clock.ts';

/** The units that one turn may spend: about 5 ms of usual work, 30 ms of the most expensive. A unit is a byte of JSON. */
export const UNITS_PER_TURN = 64 * 1024;
/** The units of one user in one turn. Pieces with more units are large. */
export const SMALL_UNITS = UNITS_PER_TURN / 2;
/** The number of pieces of one user that may wait. */
export const MAX_WAITING = 2000;
/** A large piece that took less needs no rest. */
const MIN_REST_MS = 4;
const MAX_REST_MS = 25;

interface Piece {
  readonly units: number;
  start(): void;
}

export class FairTurns {
  readonly #small = new Rotation();
  readonly #large = new Rotation();
  /** Units spent in this turn, in all and by user. */
  #spent = 0;
  readonly #spentBy = new Map<string, number>();
  #isTurnArmed = false;
  #isLargeArmed = false;
  readonly #elapsed: () => number;

  constructor(elapsed: () => number = systemClock.elapsed) {
    this.#elapsed = elapsed;
  }

  /** Returns undefined if the piece may run at once, otherwise a promise for its turn, or 'full'. */
  enter(user: string, units: number): Promise<void> | 'full' | undefined {
    const waiting = this.#small.count(user) + this.#large.count(user);
    if (waiting === 0 && units <= SMALL_UNITS && this.#spent < UNITS_PER_TURN) {
      const spent = this.#spentBy.get(user) ?? 0;
      if (spent + units <= SMALL_UNITS) {
        this.#charge(user, units);
        return undefined;
      }
    }
    return waiting >= MAX_WAITING ? 'full' : this.next(user, units);
  }

  /** Waits for a turn for the next piece of a request that was admitted before, which is never refused. */
  next(user: string, units: number): Promise<void> {
    return new Promise((start) => {
      if (units <= SMALL_UNITS) {
        this.#small.add(user, { units, start });
        this.#armTurn();
      } else {
        this.#large.add(user, { units, start });
        this.#armLarge();
      }
    });
  }

  #charge(user: string, units: number): void {
    this.#spent += units;
    this.#spentBy.set(user, (this.#spentBy.get(user) ?? 0) + units);
    this.#armTurn();
  }

  #armTurn(): void {
    if (this.#isTurnArmed) return;
    this.#isTurnArmed = true;
    setImmediate(() => this.#runTurn());
  }

  #runTurn(): void {
    this.#isTurnArmed = false;
    this.#spent = 0;
    this.#spentBy.clear();
    while (this.#spent < UNITS_PER_TURN) {
      const next = this.#small.take();
      if (next === undefined) return;
      this.#charge(next.user, next.piece.units);
      next.piece.start();
    }
  }

  #armLarge(): void {
    if (this.#isLargeArmed) return;
    this.#isLargeArmed = true;
    setImmediate(() => this.#runLarge());
  }

  #runLarge(): void {
    const next = this.#large.take();
    if (next === undefined) {
      this.#isLargeArmed = false;
      return;
    }
    const before = this.#elapsed();
    next.piece.start();
    // The piece runs in the microtasks of this turn, before the next turn.
    setImmediate(() => {
      const took = this.#elapsed() - before;
      if (took < MIN_REST_MS) this.#runLarge();
      else setTimeout(() => this.#runLarge(), Math.min(took, MAX_REST_MS));
    });
  }
}

/** Pieces that wait, one queue for each user. */
class Rotation {
  /** The first user is the next one. */
  readonly #queues = new Map<string, Piece[]>();

  count(user: string): number {
    return this.#queues.get(user)?.length ?? 0;
  }

  add(user: string, piece: Piece): void {
    const queue = this.#queues.get(user);
    if (queue === undefined) this.#queues.set(user, [piece]);
    else queue.push(piece);
  }

  /** Removes the next piece; its user becomes the last one. */
  take(): { readonly user: string; readonly piece: Piece } | undefined {
    for (const [user, queue] of this.#queues) {
      const piece = queue.shift()!;
      this.#queues.delete(user);
      if (queue.length > 0) this.#queues.set(user, queue);
      return { user, piece };
    }
    return undefined;
  }
}

/**
 * Shares the turns of the event loop between users, so that the work of one user delays the others by at most one piece.
 *
 *   enter ──► runs at once, while this turn and this user have units left
 *         ├─► waits for a later turn: small pieces in rotation between users, large pieces one at a time
 *         └─► 'full' if the user has too many pieces waiting
 *
 * A piece may name its source, such as a connection: the sources of a user take turns, too, and each has its own limit of
 * waiting pieces. So one source cannot keep the others out.
 *
 * Units estimate the time of a piece (see UNITS_PER_TURN). After a large piece, the next one waits for as long as this one
 * took, so that large pieces take at most half of the time and requests of several turns are served between them.
 */
import { systemClock } from '#lib/clock.ts';

/** The units that one turn may spend: about 5 ms of usual work, 30 ms of the most expensive. A unit is a byte of JSON. */
export const UNITS_PER_TURN = 64 * 1024;
/** The units of one user in one turn. Pieces with more units are large. */
export const SMALL_UNITS = UNITS_PER_TURN / 2;
/** The number of pieces of one user, or of one source, that may wait. */
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
  enter(user: string, units: number, source?: object): Promise<void> | 'full' | undefined {
    const waiting = this.#small.count(user, source) + this.#large.count(user, source);
    const isAlone = source === undefined ? waiting === 0 : !this.#small.has(user) && !this.#large.has(user);
    if (isAlone && units <= SMALL_UNITS && this.#spent < UNITS_PER_TURN) {
      const spent = this.#spentBy.get(user) ?? 0;
      if (spent + units <= SMALL_UNITS) {
        this.#charge(user, units);
        return undefined;
      }
    }
    return waiting >= MAX_WAITING ? 'full' : this.next(user, units, source);
  }

  /** Waits for a turn for the next piece of a request that was admitted before, which is never refused. */
  next(user: string, units: number, source?: object): Promise<void> {
    return new Promise((start) => {
      if (units <= SMALL_UNITS) {
        this.#small.add(user, { units, start }, source);
        this.#armTurn();
      } else {
        this.#large.add(user, { units, start }, source);
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

/** The source of pieces that name none. */
const NO_SOURCE = {};

/** Pieces that wait: the users take turns, and so do the sources of each user. */
class Rotation {
  /** The first user is the next one, and so is the first source of a user. */
  readonly #users = new Map<string, Map<object, Piece[]>>();

  has(user: string): boolean {
    return this.#users.has(user);
  }

  count(user: string, source: object = NO_SOURCE): number {
    return this.#users.get(user)?.get(source)?.length ?? 0;
  }

  add(user: string, piece: Piece, source: object = NO_SOURCE): void {
    const sources = this.#users.get(user);
    const queue = sources?.get(source);
    if (queue !== undefined) queue.push(piece);
    else if (sources !== undefined) sources.set(source, [piece]);
    else this.#users.set(user, new Map([[source, [piece]]]));
  }

  /** Removes the next piece; its user and its source become the last ones. */
  take(): { readonly user: string; readonly piece: Piece } | undefined {
    for (const [user, sources] of this.#users) {
      this.#users.delete(user);
      const piece = takeFirst(sources);
      if (sources.size > 0) this.#users.set(user, sources);
      return { user, piece };
    }
    return undefined;
  }
}

function takeFirst(sources: Map<object, Piece[]>): Piece {
  const [source, queue] = sources.entries().next().value!;
  const piece = queue.shift()!;
  sources.delete(source);
  if (queue.length > 0) sources.set(source, queue);
  return piece;
}

/**
 * Gives TLS handshakes their turns (lib/fair-turns.ts), and bounds those that are not finished:
 *
 *   accepted ──► turn of the address ──► begun ──► finished, or closed
 *                                          └─► replaced by a newer one: a silent one first, then the oldest
 *
 * The work of a handshake happens when the client sends its messages, and clients may send theirs in the same moment: so the
 * begun handshakes are few. They are replaced instead of waited for, because clients that never go on would keep the others
 * out. For the same reason the newest connection of an address is first: if more arrive than can be handled, the oldest would
 * be given up by their clients just before their turns.
 */
import type { Socket } from 'node:net';
import { Groups } from '#engine/http/groups.ts';
import type { FairTurns } from '#lib/fair-turns.ts';

/** The time of a TLS handshake, in units of lib/fair-turns.ts. */
const HANDSHAKE_UNITS = 16 * 1024;
/** The handshakes of one address in one turn. */
const PER_TURN = 2;
/** Begun handshakes that are not finished: of one address, and in all. Each takes up to 0.3 ms. */
export const MAX_BEGUN_PER_ADDRESS = 224;
export const MAX_BEGUN = 256;

/** The part of a socket that is needed here. */
type HandshakeSocket = Pick<Socket, 'remoteAddress' | 'bytesRead' | 'destroyed'> & {
  destroy(): unknown;
  once(event: 'close', fn: () => void): unknown;
};

interface HandshakesOptions<T> {
  readonly turns: Pick<FairTurns, 'enter' | 'next'>;
  /** Starts TLS on a socket. */
  begin(socket: T): void;
}

export class Handshakes<T extends HandshakeSocket> {
  readonly #options: HandshakesOptions<T>;
  /** Connections that wait, by address, oldest first. An address with an entry has a turn ahead. */
  readonly #waiting = new Map<string, Set<T>>();
  readonly #begun = new Groups<T>();

  constructor(options: HandshakesOptions<T>) {
    this.#options = options;
  }

  /** Begins the handshake of a new connection when its turn has come. */
  add(socket: T): void {
    const address = socket.remoteAddress ?? '';
    const waiting = this.#waiting.get(address);
    socket.once('close', () => {
      this.#waiting.get(address)?.delete(socket);
      this.#begun.delete(address, socket);
    });
    if (waiting !== undefined) {
      waiting.add(socket);
      return;
    }
    const turn = this.#options.turns.enter(shareOfHandshakes(address), HANDSHAKE_UNITS);
    if (turn === undefined) this.#begin(address, socket);
    else {
      this.#waiting.set(address, new Set([socket]));
      void this.#beginAll(address, turn === 'full' ? this.#nextTurn(address) : turn);
    }
  }

  /** Notes that the handshake of a socket is finished. */
  finish(socket: T): void {
    this.#begun.delete(socket.remoteAddress ?? '', socket);
  }

  /** Begins the handshakes of an address, some in each turn. */
  async #beginAll(address: string, first: Promise<void>): Promise<void> {
    await first;
    const waiting = this.#waiting.get(address)!;
    while (waiting.size > 0) {
      for (const newest of [...waiting].slice(-PER_TURN).toReversed()) {
        waiting.delete(newest);
        this.#begin(address, newest);
      }
      await this.#nextTurn(address);
    }
    this.#waiting.delete(address);
  }

  #nextTurn(address: string): Promise<void> {
    return this.#options.turns.next(shareOfHandshakes(address), PER_TURN * HANDSHAKE_UNITS);
  }

  #begin(address: string, socket: T): void {
    if (socket.destroyed) return;
    const crowded = this.#begun.sizeOf(address) >= MAX_BEGUN_PER_ADDRESS ? address : undefined;
    const from = crowded ?? (this.#begun.size >= MAX_BEGUN ? this.#begun.largest() : undefined);
    if (from !== undefined) {
      const replaced = this.#begun.findOf(from, ({ bytesRead }) => bytesRead === 0) ?? this.#begun.oldestOf(from)!;
      this.#begun.delete(from, replaced);
      replaced.destroy();
    }
    this.#begun.add(address, socket);
    this.#options.begin(socket);
  }
}

function shareOfHandshakes(address: string): string {
  return `handshakes of ${address}`;
}

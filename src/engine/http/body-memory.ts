/**
 * Bounds the bytes of request bodies that are held at the same time, in all and for each user, until their requests end.
 * For its user a body counts when it is announced, so that of many bodies some are read completely, instead of all of them
 * in part. In all, only bytes that have arrived count: users who announce and send nothing keep nobody else out. Each user
 * may always have a small amount, so that the bodies of others keep no heartbeat out.
 */
const MIB = 1024 * 1024;
const MAX_BYTES = 512 * MIB;
const MAX_BYTES_OF_USER = 32 * MIB;
/** The bytes that a user may have even if there is no room in all. */
export const ASSURED_BYTES = MIB / 4;

export class BodyMemory {
  #bytes = 0;
  readonly #byUser = new Map<string, number>();

  /** Opens the account of one body. */
  open(user: string): BodyBytes {
    return new BodyBytes((counts) => this.#take(user, counts));
  }

  /** Changes the counts. Returns false, without a change, if that would exceed a limit. */
  #take(user: string, { ofUser, inAll }: Counts): boolean {
    const total = (this.#byUser.get(user) ?? 0) + ofUser;
    if (ofUser > 0 && total > MAX_BYTES_OF_USER) return false;
    if (inAll > 0 && this.#bytes + inAll > MAX_BYTES && total > ASSURED_BYTES) return false;
    this.#bytes += inAll;
    if (total === 0) this.#byUser.delete(user);
    else this.#byUser.set(user, total);
    return true;
  }
}

interface Counts {
  readonly ofUser: number;
  readonly inAll: number;
}

/** The bytes of one body. */
export class BodyBytes {
  readonly #take: (counts: Counts) => boolean;
  #ofUser = 0;
  #inAll = 0;

  constructor(take: (counts: Counts) => boolean) {
    this.#take = take;
  }

  /** Counts bytes that are announced. Returns false if the user has no room for them now. */
  announce(bytes: number): boolean {
    if (!this.#take({ ofUser: bytes, inAll: 0 })) return false;
    this.#ofUser += bytes;
    return true;
  }

  /** Counts bytes that have arrived. Returns false if there is no room for them now. */
  add(bytes: number): boolean {
    const unannounced = Math.max(0, this.#inAll + bytes - this.#ofUser);
    if (!this.#take({ ofUser: unannounced, inAll: bytes })) return false;
    this.#ofUser += unannounced;
    this.#inAll += bytes;
    return true;
  }

  /** Returns all bytes. A repeated call does nothing. */
  close(): void {
    this.#take({ ofUser: -this.#ofUser, inAll: -this.#inAll });
    this.#ofUser = 0;
    this.#inAll = 0;
  }
}

/**
 * Bounds the bytes of request bodies that are held at the same time, in all and for each user. A byte counts from its
 * arrival until its request ends. Each user may always have a small amount, so that the bodies of others keep no heartbeat
 * out.
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
    return new BodyBytes((bytes) => this.#take(user, bytes));
  }

  /** Changes the count by `bytes`. Returns false, without a change, if that would exceed a limit. */
  #take(user: string, bytes: number): boolean {
    const ofUser = (this.#byUser.get(user) ?? 0) + bytes;
    const isCrowded = this.#bytes + bytes > MAX_BYTES && ofUser > ASSURED_BYTES;
    if (bytes > 0 && (isCrowded || ofUser > MAX_BYTES_OF_USER)) return false;
    this.#bytes += bytes;
    if (ofUser === 0) this.#byUser.delete(user);
    else this.#byUser.set(user, ofUser);
    return true;
  }
}

/** The bytes of one body. */
export class BodyBytes {
  readonly #take: (bytes: number) => boolean;
  #bytes = 0;

  constructor(take: (bytes: number) => boolean) {
    this.#take = take;
  }

  /** Returns false if there is no room for more bytes now. */
  add(bytes: number): boolean {
    if (!this.#take(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Returns all bytes. A repeated call does nothing. */
  close(): void {
    if (this.#bytes > 0) this.#take(-this.#bytes);
    this.#bytes = 0;
  }
}

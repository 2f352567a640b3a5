/**
 * Bounds the connections of the listener, so that sockets without a user can neither exhaust the file descriptors of the
 * process, nor hold memory, nor keep others out:
 *
 *   accepted ──► handshake complete ──► request of a user ──► known: counted for the user
 *      │             │                                          └─► idle for 15 minutes: closed
 *      │             └─► no user: idle for 30 seconds, or requests in progress for 10: closed
 *      └─► no complete request within 10 seconds: closed
 *
 * A new connection replaces the oldest one without a user, of its address if that has many; otherwise one of the user who
 * has the most. Connections are identified by their raw socket: an address and port may be used again before the server has
 * noticed that they were given up.
 */
import { Groups } from '#engine/http/groups.ts';

/** The time in which a connection must deliver its first request. */
const HEAD_TIMEOUT_MS = 10_000;
const ANONYMOUS_IDLE_MS = 30_000;
const KNOWN_IDLE_MS = 15 * 60_000;
/** The time that a client has to close after a GOAWAY. */
const CLOSE_GRACE_MS = 2000;
export interface ConnectionSizes {
  readonly total: number;
  /** The number of connections without a user, from one address. */
  readonly anonymousPerAddress: number;
  /** The number of connections without a user whose handshake is complete: from one address, and in all. */
  readonly securedPerAddress: number;
  readonly secured: number;
  readonly perUser: number;
  /** The time in which the TLS handshake, and then the head of a request, must be complete. */
  readonly headMs: number;
}

const MAX_CONNECTIONS = 8192;
/** Descriptors for everything else: the store, connections to nodes and webhooks, logs. */
const RESERVED_FILES = 256;

/** Returns limits that leave enough file descriptors for everything else. */
export function connectionSizes(openFileLimit: number): ConnectionSizes {
  // At least a quarter is reserved.
  const free = Math.min(openFileLimit - RESERVED_FILES, 0.75 * openFileLimit);
  const total = Math.max(64, Math.floor(Math.min(MAX_CONNECTIONS, free)));
  const half = Math.floor(total / 2);
  return {
    total,
    anonymousPerAddress: Math.min(512, half),
    securedPerAddress: Math.min(192, half),
    secured: Math.min(256, half),
    perUser: Math.min(1024, half),
    headMs: HEAD_TIMEOUT_MS,
  };
}

/** The part of a raw socket that is needed here. */
interface LimitedSocket {
  readonly remoteAddress?: string | undefined;
  destroy(): unknown;
}

interface Connection {
  readonly socket: LimitedSocket;
  readonly address: string;
  /** Ends the session of an HTTP/2 connection; undefined for others and before the handshake. */
  end: (() => void) | undefined;
  user: string | undefined;
  /** Requests in progress. */
  open: number;
  hasRequested: boolean;
  /** True if credentials of the last request were invalid. */
  isSuspect: boolean;
  /** The last change between idle and requests in progress. */
  changedAtMs: number;
}

interface ConnectionLimitsOptions {
  readonly sizes: ConnectionSizes;
  elapsed(): number;
  /** Called with the reason why a connection is closed. */
  onClose?(why: string): void;
}

export class ConnectionLimits {
  readonly #options: ConnectionLimitsOptions;
  readonly #all = new Map<object, Connection>();
  /** Connections without a user, by address. */
  readonly #anonymous = new Groups<Connection>();
  readonly #oldestAnonymous = new Set<Connection>();
  /** Connections without a user whose handshake is complete, by address. */
  readonly #secured = new Groups<Connection>();
  /** Connections by user. */
  readonly #known = new Groups<Connection>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLimitsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Counts a new connection. Returns false if it was closed because nobody can make room for it. */
  accept(socket: LimitedSocket): boolean {
    const { total, anonymousPerAddress } = this.#options.sizes;
    const { remoteAddress: address } = socket;
    if (address === undefined) {
      // The client has already gone.
      socket.destroy();
      return false;
    }
    if (this.#anonymous.sizeOf(address) >= anonymousPerAddress) {
      this.#close(this.#anonymous.oldestOf(address)!, 'too many connections without a user from one address');
    }
    if (this.#all.size >= total) {
      const replaced = this.#oldestAnonymous.values().next().value ?? this.#ofLargestUser();
      if (replaced === undefined) {
        this.#options.onClose?.('too many connections');
        socket.destroy();
        return false;
      }
      this.#close(replaced, 'too many connections');
    }
    const state = { end: undefined, user: undefined, open: 0, hasRequested: false, isSuspect: false };
    const connection = { socket, address, changedAtMs: this.#options.elapsed(), ...state };
    this.#all.set(socket, connection);
    this.#anonymous.add(address, connection);
    this.#oldestAnonymous.add(connection);
    this.#armSweep();
    return true;
  }

  /** Returns an idle connection of the user who has the most; if none is idle, the oldest one. */
  #ofLargestUser(): Connection | undefined {
    const user = this.#known.largest();
    if (user === undefined) return undefined;
    return this.#known.findOf(user, ({ open }) => open === 0) ?? this.#known.oldestOf(user);
  }

  /** Forgets a connection that is closed. */
  remove(socket: object): void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return;
    this.#all.delete(socket);
    this.#forgetAnonymous(connection);
    if (connection.user !== undefined) this.#known.delete(connection.user, connection);
  }

  #forgetAnonymous(connection: Connection): void {
    this.#anonymous.delete(connection.address, connection);
    this.#oldestAnonymous.delete(connection);
    this.#secured.delete(connection.address, connection);
  }

  /** Notes that the handshake of a connection is complete. A connection without a user may replace another one. */
  secure(socket: object): void {
    const connection = this.#all.get(socket);
    if (connection === undefined || connection.user !== undefined) return;
    const { securedPerAddress, secured } = this.#options.sizes;
    const { address } = connection;
    const crowded = this.#secured.sizeOf(address) >= securedPerAddress ? address : undefined;
    const from = crowded ?? (this.#secured.size >= secured ? this.#secured.largest() : undefined);
    if (from !== undefined) {
      // One that has not sent a request yet may be that of a user.
      const replaced = this.#secured.findOf(from, ({ hasRequested }) => hasRequested) ?? this.#secured.oldestOf(from)!;
      this.#close(replaced, 'too many connections without a user');
    }
    this.#secured.add(address, connection);
  }

  /** Sets how the session of an HTTP/2 connection is ended, which sends a GOAWAY. */
  setEnd(socket: object, end: () => void): void {
    const connection = this.#all.get(socket);
    if (connection !== undefined) connection.end = end;
  }

  /** Returns the number of requests in progress. */
  openRequests(socket: object): number {
    return this.#all.get(socket)?.open ?? 0;
  }

  /** Notes the start of a request. Returns a function for its end. */
  beginRequest(socket: object): () => void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return () => {};
    connection.hasRequested = true;
    if (connection.open++ === 0) connection.changedAtMs = this.#options.elapsed();
    return () => {
      if (--connection.open === 0) connection.changedAtMs = this.#options.elapsed();
    };
  }

  /** Counts a connection for its user. Closes an idle one of the same user if needed. */
  identify(socket: object, user: string): void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return;
    connection.isSuspect = false;
    if (connection.user !== undefined) return;
    this.#forgetAnonymous(connection);
    connection.user = user;
    if (this.#known.sizeOf(user) >= this.#options.sizes.perUser) {
      this.#close(this.#known.findOf(user, ({ open }) => open === 0) ?? connection, 'too many connections of one user');
    }
    if (this.#all.has(socket)) this.#known.add(user, connection);
  }

  /** Notes a request with invalid credentials. */
  suspect(socket: object): void {
    const connection = this.#all.get(socket);
    if (connection !== undefined) connection.isSuspect = true;
  }

  /** Reports whether the last request of the connection was that of a user. */
  isTrusted(socket: object): boolean {
    const connection = this.#all.get(socket);
    return connection?.user !== undefined && !connection.isSuspect;
  }

  /** Closes the connections that are due. */
  sweep(): void {
    const now = this.#options.elapsed();
    for (const connection of [...this.#all.values()]) {
      const why = this.#whyDue(connection, now - connection.changedAtMs);
      if (why !== undefined) this.#close(connection, why);
    }
  }

  /** Returns why a connection must be closed that has been idle, or has had requests in progress, for this long. */
  #whyDue({ open, user, hasRequested }: Connection, ms: number): string | undefined {
    const { headMs } = this.#options.sizes;
    if (open > 0) return user === undefined && ms >= headMs ? 'requests without a user take too long' : undefined;
    if (!hasRequested && ms >= headMs) return 'no request arrived';
    return ms >= (user === undefined ? ANONYMOUS_IDLE_MS : KNOWN_IDLE_MS) ? 'idle' : undefined;
  }

  stop(): void {
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }

  #armSweep(): void {
    if (this.#sweeping !== undefined) return;
    this.#sweeping = setInterval(() => this.sweep(), this.#options.sizes.headMs / 4);
    this.#sweeping.unref();
  }

  #close(connection: Connection, why: string): void {
    this.#options.onClose?.(why);
    const { socket, end, user, open } = connection;
    this.remove(socket);
    if (end === undefined || user === undefined || open > 0) {
      socket.destroy();
      return;
    }
    // After a GOAWAY, the client sends its next request on another connection; otherwise that request could be lost.
    end();
    setTimeout(() => socket.destroy(), CLOSE_GRACE_MS).unref();
  }
}

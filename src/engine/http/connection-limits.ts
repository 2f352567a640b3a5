/**
 * Bounds the connections of the listener, so that sockets without a user can neither exhaust the file descriptors of the
 * process nor keep others out:
 *
 *   accepted ──► first complete request ──► request of a user ──► known: counted for the user
 *      │                │                                           └─► idle for 15 minutes: closed
 *      │                └─► anonymous: idle for 30 seconds: closed
 *      └─► no complete request within 10 seconds: closed
 *
 * A new connection replaces the oldest one of its address, or of all, that has no user.
 */

/** The time in which a connection must deliver its first request. */
const HEAD_TIMEOUT_MS = 10_000;
const ANONYMOUS_IDLE_MS = 30_000;
const KNOWN_IDLE_MS = 15 * 60_000;

export interface ConnectionSizes {
  readonly total: number;
  /** The number of connections without a user, from one address. */
  readonly anonymousPerAddress: number;
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
  return { total, anonymousPerAddress: Math.min(512, half), perUser: half, headMs: HEAD_TIMEOUT_MS };
}

/** The part of a socket that is needed here. */
interface LimitedSocket {
  readonly remoteAddress?: string | undefined;
  destroy(): unknown;
}

interface Connection {
  readonly id: string;
  readonly socket: LimitedSocket;
  readonly address: string;
  user: string | undefined;
  /** Requests in progress. */
  open: number;
  hasRequested: boolean;
  /** True if credentials of the last request were invalid. */
  isSuspect: boolean;
  /** Since when no request is in progress. */
  idleSinceMs: number;
}

interface ConnectionLimitsOptions {
  readonly sizes: ConnectionSizes;
  elapsed(): number;
  /** Called with the reason why a connection is closed. */
  onClose?(why: string): void;
}

export class ConnectionLimits {
  readonly #options: ConnectionLimitsOptions;
  readonly #all = new Map<string, Connection>();
  /** Connections without a user, oldest first, in all and by address. */
  readonly #anonymous = new Groups();
  readonly #known = new Groups();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLimitsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Counts a new connection. Returns false if it was closed because nobody can make room for it. */
  accept(id: string, socket: LimitedSocket): boolean {
    const { total, anonymousPerAddress } = this.#options.sizes;
    const address = socket.remoteAddress ?? '';
    if (this.#anonymous.sizeOf(address) >= anonymousPerAddress) {
      this.#close(this.#anonymous.oldestOf(address)!, 'too many connections without a user from one address');
    }
    if (this.#all.size >= total) {
      const oldest = this.#anonymous.oldest();
      if (oldest === undefined) {
        this.#options.onClose?.('too many connections');
        socket.destroy();
        return false;
      }
      this.#close(oldest, 'too many connections');
    }
    const idleSinceMs = this.#options.elapsed();
    const state = { user: undefined, open: 0, hasRequested: false, isSuspect: false, idleSinceMs };
    const connection = { id, socket, address, ...state };
    this.#all.set(id, connection);
    this.#anonymous.add(address, connection);
    this.#armSweep();
    return true;
  }

  /** Forgets a connection that is closed. */
  remove(id: string): void {
    const connection = this.#all.get(id);
    if (connection === undefined) return;
    this.#all.delete(id);
    if (connection.user === undefined) this.#anonymous.delete(connection.address, connection);
    else this.#known.delete(connection.user, connection);
  }

  /** Notes the start of a request. Returns a function for its end. */
  beginRequest(id: string): () => void {
    const connection = this.#all.get(id);
    if (connection === undefined) return () => {};
    connection.hasRequested = true;
    connection.open++;
    return () => {
      connection.open--;
      connection.idleSinceMs = this.#options.elapsed();
    };
  }

  /** Counts a connection for the user of its first authenticated request. Closes an idle one of the same user if needed. */
  identify(id: string, user: string): void {
    const connection = this.#all.get(id);
    if (connection === undefined) return;
    connection.isSuspect = false;
    if (connection.user !== undefined) return;
    this.#anonymous.delete(connection.address, connection);
    connection.user = user;
    if (this.#known.sizeOf(user) >= this.#options.sizes.perUser) {
      this.#close(this.#known.findOf(user, ({ open }) => open === 0) ?? connection, 'too many connections of one user');
    }
    if (this.#all.has(id)) this.#known.add(user, connection);
  }

  /** Notes a request with invalid credentials. */
  suspect(id: string): void {
    const connection = this.#all.get(id);
    if (connection !== undefined) connection.isSuspect = true;
  }

  /** Reports whether the last request of the connection was that of a user. */
  isTrusted(id: string): boolean {
    const connection = this.#all.get(id);
    return connection?.user !== undefined && !connection.isSuspect;
  }

  /** Closes the connections that are due. */
  sweep(): void {
    const now = this.#options.elapsed();
    for (const connection of [...this.#all.values()]) {
      if (connection.open > 0) continue;
      const idleMs = now - connection.idleSinceMs;
      if (!connection.hasRequested && idleMs >= this.#options.sizes.headMs)
        this.#close(connection, 'no request arrived');
      else if (idleMs >= (connection.user === undefined ? ANONYMOUS_IDLE_MS : KNOWN_IDLE_MS)) {
        this.#close(connection, 'idle');
      }
    }
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
    this.remove(connection.id);
    connection.socket.destroy();
  }
}

/** Connections by a key, oldest first. */
class Groups {
  readonly #groups = new Map<string, Set<Connection>>();
  readonly #all = new Set<Connection>();

  sizeOf(key: string): number {
    return this.#groups.get(key)?.size ?? 0;
  }

  add(key: string, connection: Connection): void {
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([connection]));
    else group.add(connection);
    this.#all.add(connection);
  }

  delete(key: string, connection: Connection): void {
    const group = this.#groups.get(key);
    if (group?.delete(connection) === true && group.size === 0) this.#groups.delete(key);
    this.#all.delete(connection);
  }

  oldest(): Connection | undefined {
    return this.#all.values().next().value;
  }

  oldestOf(key: string): Connection | undefined {
    return this.#groups.get(key)?.values().next().value;
  }

  findOf(key: string, test: (connection: Connection) => boolean): Connection | undefined {
    return this.#groups.get(key)?.values().find(test);
  }
}

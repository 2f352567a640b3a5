/**
 * A watcher on raw HTTP/2 that disconnects at random: its stream or its whole connection, within a line or a batch of
 * lines. It keeps only complete lines, and resumes from the last one.
 */
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

/** Connections that several watchers share; a destroyed one is opened again by its next user. */
export class Connections {
  readonly #access: ClusterAccess;
  readonly #sessions: (ClientHttp2Session | undefined)[];

  constructor(access: ClusterAccess, count: number) {
    this.#access = access;
    this.#sessions = Array.from({ length: count }, () => undefined);
  }

  session(index: number): ClientHttp2Session {
    const known = this.#sessions[index];
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const { server, certificateAuthority: ca, clientCertificate: cert, clientKey: key } = this.#access;
    const session = connect(server, { ca, cert, key, settings: { enablePush: false, initialWindowSize: 256 * 1024 } });
    // The streams report errors.
    session.on('error', () => {});
    session.once('connect', () => session.setLocalWindowSize(4 * 1024 * 1024));
    this.#sessions[index] = session;
    return session;
  }

  close(): void {
    for (const session of this.#sessions) session?.destroy();
  }
}

export interface StormWatcherOptions {
  readonly connections: Connections;
  readonly connection: number;
  /** Path without query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly since: number;
  readonly random: SeededRandom;
  /** Called once for each line; returns its revision, or throws if it is not the expected line. */
  line(bytes: Buffer): number;
}

export interface Cuts {
  streams: number;
  connections: number;
  insideLine: number;
  /** Ended by the server, or with the connection of another watcher. */
  byOthers: number;
}

const FEWEST_LINES = 400;
const MOST_LINES = 6000;
/** The number of further lines to wait for a disconnect within a line. */
const PATIENCE_LINES = 600;
const NEWLINE = 0x0a;

export class StormWatcher {
  readonly cuts: Cuts = { streams: 0, connections: 0, insideLine: 0, byOthers: 0 };
  readonly failed: Promise<never>;
  readonly #options: StormWatcherOptions;
  #fail: (error: Error) => void;
  #since: number;
  #closed = false;
  #untilCut = 0;
  /** Disconnects at a line boundary within a batch; otherwise after a batch that ends within a line. */
  #strict = false;

  constructor(options: StormWatcherOptions) {
    this.#options = options;
    this.#since = options.since;
    const { promise, reject } = Promise.withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    promise.catch(() => {});
    this.#open();
  }

  close(): void {
    this.#closed = true;
  }

  #open(): void {
    const { connections, connection, path, random } = this.#options;
    const query = new URLSearchParams({ ...this.#options.query, watch: '1', resourceVersion: String(this.#since) });
    const url = `${path}?${query.toString()}`;
    const stream = connections.session(connection).request({ ':path': url });
    this.#untilCut = random.between(FEWEST_LINES, MOST_LINES);
    this.#strict = random.chance(0.5);
    let head: Buffer[] = [];
    let cut = false;
    stream.on('error', () => {});
    stream.on('response', ({ ':status': status }) => {
      if (status !== 200) this.#fail(new Error(`${url} answered with ${status}`));
    });
    stream.on('data', (chunk: Buffer) => {
      if (cut) return;
      const rest = this.#lines(head.length === 0 ? chunk : Buffer.concat([...head, chunk]));
      head = rest === undefined || rest.length === 0 ? [] : [rest];
      const enough = this.#untilCut <= 0 && (head.length > 0 || this.#untilCut <= -PATIENCE_LINES);
      if (rest === undefined || enough) {
        cut = true;
        if (head.length > 0) this.cuts.insideLine++;
        this.#cut(stream);
      }
    });
    stream.on('close', () => {
      if (!cut) this.cuts.byOthers++;
      if (!this.#closed) this.#open();
    });
  }

  /** Processes complete lines and returns the rest; undefined if it disconnects within the batch. */
  #lines(bytes: Buffer): Buffer | undefined {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      if (this.#strict && this.#untilCut <= 0) return undefined;
      this.#untilCut--;
      try {
        this.#since = this.#options.line(bytes.subarray(start, end));
      } catch (error) {
        this.#fail(error as Error);
        this.#closed = true;
        return undefined;
      }
      start = end + 1;
    }
    return bytes.subarray(start);
  }

  #cut(stream: ClientHttp2Stream): void {
    const { random } = this.#options;
    if (random.chance(0.85)) {
      this.cuts.streams++;
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    this.cuts.connections++;
    const { session } = stream;
    if (random.chance(0.5)) session?.destroy();
    else session?.socket.destroy();
  }
}

/**
 * The nodes of this machine, each a process of its own (`selfsame node`), so that none can take another or the server
 * with it. A process that ends is started again after a while. One of an earlier server, which was killed, still runs:
 * it is told to leave, and its successor takes over; the guests notice nothing of either.
 */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync, realpathSync } from 'node:fs';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { DataDirBusyError, acquireDataDir } from '#lib/data-dir-lock.ts';
import type { Log } from '#lib/log.ts';

export interface NodeCommand {
  readonly name: string;
  readonly dataDir: string;
  readonly file: string;
  readonly args: readonly string[];
  /** Our own unless set. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface NodeProcessOptions {
  readonly nodes: readonly NodeCommand[];
  readonly clock: Clock;
  readonly log: Log;
}

const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** A process that ran this long makes up for earlier failures. */
const GOOD_RUN_MS = 60_000;
const LEAVE_POLL_MS = 50;
const LEAVE_LIMIT_MS = 10_000;

export class NodeProcesses {
  readonly #options: NodeProcessOptions;
  readonly #running = new Map<string, ChildProcess>();
  readonly #loops: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<string>();
  #told: () => void = () => {};
  readonly #ready: Promise<void>;

  constructor(options: NodeProcessOptions) {
    this.#options = options;
    for (const { name } of options.nodes) this.#waiting.add(name);
    this.#ready = new Promise((resolve) => (this.#told = resolve));
    for (const node of options.nodes) this.#loops.push(this.#keepRunning(node));
  }

  /** Waits until each node has said that it is ready, but not longer than that; the result names those that have not. */
  async ready(limitMs: number): Promise<readonly string[]> {
    if (this.#waiting.size > 0) await Promise.race([this.#ready, this.#pause(limitMs)]);
    return [...this.#waiting];
  }

  /** Guests go on running. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const child of this.#running.values()) child.kill('SIGTERM');
    await Promise.all(this.#loops);
  }

  async #keepRunning(node: NodeCommand): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted;) {
      const startedAt = clock.now();
      // A full disk or too many processes end no server: they pass, and the node is tried again.
      const outcome = await this.#runOnce(node).catch((err: unknown) => ({ err }));
      if (signal.aborted) return;
      failures = clock.now() - startedAt >= GOOD_RUN_MS ? 1 : failures + 1;
      const delayMs = backoffMs(failures, BACKOFF);
      log.error({ node: node.name, ...outcome, delayMs }, 'The agent of a node ended; starting it again');
      await this.#pause(delayMs);
    }
  }

  async #runOnce(node: NodeCommand): Promise<object> {
    await this.#predecessorLeft(node);
    return this.#stopping.signal.aborted ? {} : await this.#run(node);
  }

  async #run({ name, file, args, env }: NodeCommand): Promise<{ code: number | null; signal: string | null }> {
    // A session of its own: Ctrl-C is for the server, which tells its nodes.
    const options: SpawnOptions = { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true };
    const child = spawn(file, args, env === undefined ? options : { ...options, env });
    this.#running.set(name, child);
    child.once('message', () => {
      this.#waiting.delete(name);
      if (this.#waiting.size === 0) this.#told();
    });
    try {
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
      return { code, signal };
    } finally {
      this.#running.delete(name);
    }
  }

  /** Whoever holds the lock of the node's directory is asked to leave, and waited for. */
  async #predecessorLeft({ name, dataDir }: NodeCommand): Promise<void> {
    const { clock, log } = this.#options;
    const until = clock.now() + LEAVE_LIMIT_MS;
    let told = false;
    while (!this.#stopping.signal.aborted) {
      const holder = holderOf(dataDir);
      if (holder === 'nobody') return;
      const { pid } = holder;
      if (pid === undefined || !worksIn(pid, dataDir)) {
        await this.#pause(LEAVE_POLL_MS);
        continue;
      }
      if (!told) log.warn({ node: name, pid }, 'An agent of an earlier server still runs; it is told to leave');
      const late = clock.now() > until;
      if (!told || late) kill(pid, late ? 'SIGKILL' : 'SIGTERM');
      told = true;
      await this.#pause(LEAVE_POLL_MS);
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, done);
      signal.addEventListener('abort', done, { once: true });
      function done() {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      }
    });
  }
}

/** Who holds the directory; its pid is not known in the first moments. */
function holderOf(dir: string): 'nobody' | { pid: number | undefined } {
  try {
    acquireDataDir(dir).release();
    return 'nobody';
  } catch (error) {
    if (error instanceof DataDirBusyError) return { pid: error.pid };
    throw error;
  }
}

/** The file with the pid may be an older one's, and that number somebody else's by now: an agent works in its directory. */
function worksIn(pid: number, dir: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dir);
  } catch {
    return false;
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

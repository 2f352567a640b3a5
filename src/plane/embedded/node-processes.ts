/**
 * Runs the nodes of this machine, each in its own process (`selfsame node`), so that a crash affects no other node and
 * not the server. A process that ends is started again with a backoff. A process of an earlier server that was killed
 * still runs: it is stopped, and its successor takes over. Neither affects the guests.
 */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync, realpathSync } from 'node:fs';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { DataDirBusyError, acquireDataDir } from '#lib/files/data-dir-lock.ts';
import type { Log } from '#lib/log.ts';

interface NodeCommand {
  readonly name: string;
  readonly dataDir: string;
  readonly file: string;
  readonly args: readonly string[];
  /** Environment; by default that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

interface NodeProcessOptions {
  readonly nodes: readonly NodeCommand[];
  readonly clock: Clock;
  readonly log: Log;
}

const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** A run of this length resets the backoff. */
const GOOD_RUN_MS = 60_000;
const LEAVE_POLL_MS = 50;
const LEAVE_LIMIT_MS = 10_000;

export class NodeProcesses {
  readonly #options: NodeProcessOptions;
  readonly #running = new Map<string, ChildProcess>();
  readonly #loops: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<string>();
  #resolveReady: () => void = () => {};
  readonly #ready: Promise<void>;

  constructor(options: NodeProcessOptions) {
    this.#options = options;
    for (const { name } of options.nodes) this.#waiting.add(name);
    this.#ready = new Promise((resolve) => (this.#resolveReady = resolve));
    for (const node of options.nodes) this.#loops.push(this.#keepRunning(node));
  }

  /**
   * Waits until all nodes have reported that they are ready, or for the limit. Returns the names of those that have
   * not.
   */
  async ready(limitMs: number): Promise<readonly string[]> {
    if (this.#waiting.size > 0) await Promise.race([this.#ready, this.#pause(limitMs)]);
    return [...this.#waiting];
  }

  /** Stops the processes; guests keep running. */
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
      // Temporary errors, such as a full disk or too many processes, must not end the server.
      const outcome = await this.#runOnce(node).catch((err: unknown) => ({ err }));
      if (signal.aborted) return;
      failures = clock.now() - startedAt >= GOOD_RUN_MS ? 1 : failures + 1;
      const delayMs = backoffMs(failures, BACKOFF);
      log.error({ node: node.name, ...outcome, delayMs }, 'The agent of a node has ended; restarting it');
      await this.#pause(delayMs);
    }
  }

  async #runOnce(node: NodeCommand): Promise<object> {
    await this.#stopPredecessor(node);
    return this.#stopping.signal.aborted ? {} : await this.#run(node);
  }

  async #run({ name, file, args, env }: NodeCommand): Promise<{ code: number | null; signal: string | null }> {
    // In its own session: Ctrl-C stops only the server, which then stops its nodes.
    const options: SpawnOptions = { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true };
    const child = spawn(file, args, env === undefined ? options : { ...options, env });
    this.#running.set(name, child);
    child.once('message', () => {
      this.#waiting.delete(name);
      if (this.#waiting.size === 0) this.#resolveReady();
    });
    try {
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
      return { code, signal };
    } finally {
      this.#running.delete(name);
    }
  }

  /** Stops a process that holds the lock of the node's directory, and waits for its end. */
  async #stopPredecessor({ name, dataDir }: NodeCommand): Promise<void> {
    const { clock, log } = this.#options;
    const until = clock.now() + LEAVE_LIMIT_MS;
    let isSignalled = false;
    while (!this.#stopping.signal.aborted) {
      const holder = lockHolderOf(dataDir);
      if (holder === 'free') return;
      const { pid } = holder;
      if (pid === undefined || !worksInDirectory(pid, dataDir)) {
        await this.#pause(LEAVE_POLL_MS);
        continue;
      }
      if (!isSignalled) log.warn({ node: name, pid }, 'An agent of an earlier server still runs; stopping it');
      const isLate = clock.now() > until;
      if (!isSignalled || isLate) kill(pid, isLate ? 'SIGKILL' : 'SIGTERM');
      isSignalled = true;
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

/** Returns the process that holds the lock. Its pid is unknown until it has written its file. */
function lockHolderOf(dir: string): 'free' | { pid: number | undefined } {
  try {
    acquireDataDir(dir).release();
    return 'free';
  } catch (error) {
    if (error instanceof DataDirBusyError) return { pid: error.pid };
    throw error;
  }
}

/** Reports whether the process works in the directory, like an agent: the pid file may be old and its pid reused. */
function worksInDirectory(pid: number, dir: string): boolean {
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

/**
 * Processes that outlive the node agent: QEMU and swtpm. The kernel reuses pids, but a pid with its start time and the
 * boot id identifies one process for good. Zombies count as dead, because their parent may be an init that does not
 * reap.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFile, readdir, readlink } from 'node:fs/promises';
import type { Clock } from '#lib/clock.ts';
import { poll, waitAtMost } from '#node/hypervisor/qemu/process/timing.ts';

/** Identifies a process, also after its exit. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Receives standard output and standard error. */
  readonly logFd: number;
  /** Descriptors that become 3, 4 ... in the process. */
  readonly fds?: readonly number[];
}

/** Excludes our own environment: it may contain secrets, and a guest may compromise QEMU. */
export const GUEST_ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
const POLL_INTERVAL_MS = 20;

export class DetachedProcess {
  readonly identity: ProcessIdentity;
  readonly #clock: Clock;
  /** Set only if this process started it. */
  readonly #child: ChildProcess | undefined;
  readonly #exited: Promise<true> | undefined;

  constructor(identity: ProcessIdentity, clock: Clock, child?: ChildProcess) {
    this.identity = identity;
    this.#clock = clock;
    this.#child = child;
    if (child === undefined) return;
    this.#exited = hasExited(child)
      ? Promise.resolve(true)
      : new Promise((done) => child.once('exit', () => done(true)));
  }

  async isAlive(): Promise<boolean> {
    if (this.#child !== undefined) return !hasExited(this.#child);
    return isRunning(this.identity);
  }

  /** Does nothing if the process has exited. */
  async kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!(await this.isAlive())) return;
    try {
      process.kill(this.identity.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  /** Waits for the exit; returns whether the process exited within that time. */
  async waitForExit(timeoutMs: number): Promise<boolean> {
    if (this.#exited !== undefined) return (await waitAtMost(this.#clock, timeoutMs, this.#exited)) === true;
    const checkExit = async () => ((await isRunning(this.identity)) ? undefined : true);
    return (await poll(this.#clock, { timeoutMs, everyMs: POLL_INTERVAL_MS }, checkExit)) === true;
  }

  /** Describes the exit if it is known: only the parent learns the exit code. */
  exitText(): string | undefined {
    if (this.#child === undefined) return undefined;
    const { signalCode, exitCode } = this.#child;
    if (signalCode !== null) return `was killed by ${signalCode}`;
    return exitCode === null ? undefined : `exited with code ${exitCode}`;
  }

  /** Stops the event loop from waiting for the process. */
  unref(): void {
    this.#child?.unref();
  }
}

/**
 * Starts a process in its own session, so that signals sent to us do not reach it. Rejects if the command cannot be
 * executed.
 */
export async function spawnDetached(options: SpawnOptions, clock: Clock): Promise<DetachedProcess> {
  const { command, args, cwd, logFd, fds = [] } = options;
  const child = spawn(command, args, {
    cwd,
    env: GUEST_ENVIRONMENT,
    detached: true,
    stdio: ['ignore', logFd, logFd, ...fds],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.on('error', reject);
  });
  const pid = child.pid as number;
  const stat = await readStat(pid);
  // Without a stat, the process has exited and was reaped; its exit code is known.
  return new DetachedProcess({ pid, startTicks: stat?.startTicks ?? '', bootId: await readBootId() }, clock, child);
}

/** Returns a process that somebody else started, or undefined if it has exited. */
export async function findProcess(pid: number, clock: Clock): Promise<DetachedProcess | undefined> {
  const stat = await readStat(pid);
  if (stat === undefined) return undefined;
  return new DetachedProcess({ pid, startTicks: stat.startTicks, bootId: await readBootId() }, clock);
}

export async function isRunning({ pid, startTicks, bootId }: ProcessIdentity): Promise<boolean> {
  const stat = await readStat(pid);
  if (stat === undefined || stat.startTicks !== startTicks || stat.state === 'Z' || stat.state === 'X') return false;
  return bootId === (await readBootId());
}

interface FoundProcess {
  readonly identity: ProcessIdentity;
  /** The working directory, also if it has been removed. */
  readonly cwd: string;
  readonly words: readonly string[];
}

/**
 * Returns the processes whose working directory is below the given real path. Slow: walks all processes of the host.
 */
export async function findProcessesBelow(directory: string): Promise<FoundProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const bootId = await readBootId();
  const found: FoundProcess[] = [];
  for (const name of pids) {
    const cwd = (await readlink(`/proc/${name}/cwd`).catch(() => '')).replace(/ \(deleted\)$/, '');
    if (!cwd.startsWith(`${directory}/`)) continue;
    const words = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const stat = await readStat(Number(name));
    if (stat === undefined || stat.state === 'Z') continue;
    found.push({ identity: { pid: Number(name), startTicks: stat.startTicks, bootId }, cwd, words: words.split('\0') });
  }
  return found;
}

/**
 * Parses /proc/<pid>/stat. The program name is in parentheses and may contain anything, so fields are counted after the
 * last one.
 */
export function parseStat(text: string): { state: string; startTicks: string } | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks };
}

async function readStat(pid: number): Promise<ReturnType<typeof parseStat>> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : parseStat(text);
}

let bootId: Promise<string> | undefined;

function readBootId(): Promise<string> {
  bootId ??= readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => 'unknown',
  );
  return bootId;
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

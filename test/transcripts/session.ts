/**
 * The shell session of a transcript: kubectl and virtctl, a working directory with `examples` and `manifests`, a home
 * directory for kubectl's caches, its own kubeconfig, and at most one command in the background.
 *
 *   run ─► output        "command &" ─► started, has written something ─► "fg N" ended after N lines ─► output
 *                                                                     └─► "fg" ended by itself ─► output
 *
 * Every command has a time limit, so that a server that does not answer fails the step instead of the whole run.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import type { Output } from '#test/transcripts/transcript.ts';

const TIME_LIMIT_MS = 30_000;
const ROOT = join(import.meta.dirname, '../..');

export interface SessionOptions {
  readonly dir: string;
  readonly kubectl: string;
  /** The file from which the kubeconfig of the session is made. */
  readonly kubeconfig: string;
  readonly namespace: string;
  /** Returns the part of the output that counts; all of it by default. */
  readonly shown?: (text: string) => string;
  /** The time limit of each command. */
  readonly timeLimitMs?: number;
}

export class Session {
  readonly #dir: string;
  readonly #shown: (text: string) => string;
  readonly #timeLimitMs: number;
  #background: RunningCommand | undefined;

  private constructor({ dir, shown = (text) => text, timeLimitMs = TIME_LIMIT_MS }: SessionOptions) {
    this.#dir = dir;
    this.#shown = shown;
    this.#timeLimitMs = timeLimitMs;
  }

  static async open(options: SessionOptions): Promise<Session> {
    const { dir, kubectl, kubeconfig, namespace } = options;
    await mkdir(join(dir, 'bin'), { recursive: true });
    await symlink(kubectl, join(dir, 'bin/kubectl'));
    await symlink(join(ROOT, 'virtctl'), join(dir, 'bin/virtctl'));
    const config = (await readFile(kubeconfig, 'utf8')).replace('namespace: default', `namespace: ${namespace}`);
    await writeFile(join(dir, 'kubeconfig'), config, { mode: 0o600 });
    await mkdir(join(dir, 'work'));
    await symlink(join(ROOT, 'examples'), join(dir, 'work/examples'));
    await symlink(join(import.meta.dirname, 'manifests'), join(dir, 'work/manifests'));
    return new Session(options);
  }

  /** Runs a command and returns its output, which is empty for a command in the background. */
  async run(command: string): Promise<Output> {
    const back = /^fg(?: (\d+))?$/.exec(command);
    if (back) return await this.#foreground(back[1] === undefined ? Number.POSITIVE_INFINITY : Number(back[1]));
    if (!command.endsWith(' &')) return await this.#start(command).untilEnd();
    if (this.#background) throw new Error(`Cannot run "${command}": another command is in the background; expected fg`);
    this.#background = this.#start(command.slice(0, -2));
    await this.#background.wrote(1);
    return { text: '', exit: 0 };
  }

  async #foreground(lines: number): Promise<Output> {
    const command = this.#background;
    if (!command) throw new Error('Cannot fg: there is no command in the background');
    this.#background = undefined;
    if (lines === Number.POSITIVE_INFINITY) return await command.untilEnd();
    await command.wrote(lines);
    return await command.interrupt();
  }

  close(): void {
    this.#background?.kill();
  }

  #start(command: string): RunningCommand {
    return new RunningCommand(command, this.#shown, {
      cwd: join(this.#dir, 'work'),
      timeLimitMs: this.#timeLimitMs,
      env: {
        PATH: `${join(this.#dir, 'bin')}:${process.env['PATH'] ?? ''}`,
        HOME: this.#dir,
        TMPDIR: this.#dir,
        KUBECONFIG: join(this.#dir, 'kubeconfig'),
        // kubectl ends before it needs garbage collection; without it, it takes a fifth less time.
        GOGC: 'off',
        LC_ALL: 'C',
        TZ: 'UTC',
      },
    });
  }
}

interface CommandOptions {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly timeLimitMs: number;
}

class RunningCommand {
  readonly #child: ChildProcess;
  readonly #shown: (text: string) => string;
  readonly #closed: Promise<void>;
  readonly #cancelLimit: () => void;
  #text = '';
  #isOver = false;
  #limitReached = false;
  #onOutput: () => void = () => {};

  constructor(command: string, shown: (text: string) => string, { timeLimitMs, cwd, env }: CommandOptions) {
    this.#shown = shown;
    // One pipe for both streams keeps their order; a separate process group can be ended as a whole.
    this.#child = spawn('/bin/sh', ['-c', `exec 2>&1\n${command}`], {
      ...{ cwd, env },
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#text += chunk;
      this.#onOutput();
    });
    this.#closed = new Promise((resolve) => {
      this.#child.once('close', () => {
        this.#isOver = true;
        this.#cancelLimit();
        this.#onOutput();
        resolve();
      });
    });
    this.#cancelLimit = systemClock.after(timeLimitMs, () => {
      this.#limitReached = true;
      this.kill();
    });
  }

  async untilEnd(): Promise<Output> {
    await this.#closed;
    const limit = this.#limitReached ? '\n(ended by the time limit of a step)' : '';
    return { text: this.#shown(this.#text) + limit, exit: this.#child.exitCode ?? 1 };
  }

  /** Resolves when there are that many lines, or when the command has ended; the transcript then shows what it printed. */
  async wrote(lines: number): Promise<void> {
    while (!this.#isOver && this.#shown(this.#text).split('\n').length <= lines) {
      await new Promise<void>((resolve) => {
        this.#onOutput = resolve;
      });
    }
  }

  /** Ends the command like Ctrl-C, but without waiting for more output. */
  async interrupt(): Promise<Output> {
    const text = this.#shown(this.#text);
    this.kill();
    await this.#closed;
    return this.#limitReached ? await this.untilEnd() : { text, exit: 0 };
  }

  kill(): void {
    if (this.#isOver || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // The process has just ended.
    }
  }
}

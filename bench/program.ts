/** A program that prints `ready` when it serves: the engine, and the floor for its start. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { memoryBytes } from './proc-files.ts';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class Program {
  readonly startMs: number;
  readonly #child: ChildProcess;

  static async start({ file, args, env }: Command): Promise<Program> {
    const from = performance.now();
    // Standard error is shown, so that warnings of the server during a measurement are visible.
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
    await waitUntilReady(child, [file, ...args].join(' '));
    return new Program(child, performance.now() - from);
  }

  private constructor(child: ChildProcess, startMs: number) {
    this.#child = child;
    this.startMs = startMs;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  memory(field: 'VmRSS' | 'VmHWM'): number {
    return memoryBytes(this.pid, field);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }
}

function waitUntilReady(child: ChildProcess, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const fail = (reason: string) => reject(new Error(`Cannot start "${command}": ${reason}; it printed: ${output}`));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail('it did not print "ready" in time');
    }, READY_TIMEOUT_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code) => fail(`it exited with code ${code}`));
    child.stdout!.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-10_000);
      if (!/^ready\b/m.test(output)) return;
      clearTimeout(timer);
      resolve();
    });
  });
}

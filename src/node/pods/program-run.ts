/** The program of one pod: its current process, the exit of the previous one, and the last output. */
import type { Clock } from '#lib/clock.ts';
import type { ProgramProcess, RunProgram } from '#node/pods/program.ts';

/** Size of the kept output; older output is dropped. */
export const OUTPUT_BYTES = 256 * 1024;
const MAX_UNREAD_BYTES = 1024 * 1024;
/** A longer run resets the restart backoff, as in the kubelet. */
const STABLE_RUN_MS = 600_000;
const NO_EARLIER_RUNS: EarlierRuns = { starts: 0, lastExit: undefined };

export interface Exit {
  readonly code: number;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

export interface ProgramState {
  readonly runningSinceMs: number | undefined;
  readonly lastExit: Exit | undefined;
  /** Number of starts, including those by earlier agents. */
  readonly starts: number;
  /** Number of consecutive short runs under this agent. */
  readonly quickExits: number;
  /** Time of the first signal to end. */
  readonly stopRequestedAtMs: number | undefined;
}

/** The runs of a program before this agent. */
export type EarlierRuns = Pick<ProgramState, 'starts' | 'lastExit'>;

export class ProgramRun {
  readonly #clock: Clock;
  readonly #onExit: () => void;
  readonly #chunks: Buffer[] = [];
  readonly #listeners = new Set<(chunk: Buffer | undefined) => void>();
  #bytes = 0;
  #process: ProgramProcess | undefined;
  #startedAtMs = 0;
  #starts: number;
  #quickExits = 0;
  #lastExit: Exit | undefined;
  #stopRequestedAtMs: number | undefined;

  constructor(clock: Clock, onExit: () => void, { starts, lastExit }: EarlierRuns = NO_EARLIER_RUNS) {
    this.#clock = clock;
    this.#onExit = onExit;
    this.#starts = starts;
    this.#lastExit = lastExit;
  }

  get state(): ProgramState {
    return {
      runningSinceMs: this.#process === undefined ? undefined : this.#startedAtMs,
      lastExit: this.#lastExit,
      starts: this.#starts,
      quickExits: this.#quickExits,
      stopRequestedAtMs: this.#stopRequestedAtMs,
    };
  }

  start(run: RunProgram, args: readonly string[], env: Readonly<Record<string, string>>): void {
    if (this.#process !== undefined) return;
    this.#startedAtMs = this.#clock.now();
    this.#starts++;
    const process = run(args, env);
    this.#process = process;
    process.onOutput((chunk) => this.#record(chunk));
    void this.#await(process);
  }

  async #await(process: ProgramProcess): Promise<void> {
    const code = await process.exited;
    this.#process = undefined;
    const finishedAtMs = this.#clock.now();
    this.#quickExits = finishedAtMs - this.#startedAtMs < STABLE_RUN_MS ? this.#quickExits + 1 : 1;
    this.#lastExit = { code, startedAtMs: this.#startedAtMs, finishedAtMs };
    for (const listener of this.#listeners) listener(undefined);
    this.#onExit();
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#stopRequestedAtMs ??= this.#clock.now();
    this.#process?.kill(signal);
  }

  read(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** Yields the kept output and then new output until the process ends. Ends early if too much output is unread. */
  async *follow(signal: AbortSignal): AsyncGenerator<Buffer> {
    const kept = this.read();
    const unread: (Buffer | undefined)[] = [kept];
    if (this.#process === undefined) unread.push(undefined);
    let unreadBytes = kept.length;
    let wake = () => {};
    const listener = (chunk: Buffer | undefined): void => {
      unreadBytes += chunk?.length ?? 0;
      if (unreadBytes > MAX_UNREAD_BYTES) this.#listeners.delete(listener);
      unread.push(unreadBytes > MAX_UNREAD_BYTES ? undefined : chunk);
      wake();
    };
    const abort = (): void => listener(undefined);
    this.#listeners.add(listener);
    signal.addEventListener('abort', abort);
    try {
      while (!signal.aborted) {
        if (unread.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const chunk = unread.shift();
        if (chunk === undefined) return;
        unreadBytes -= chunk.length;
        yield chunk;
      }
    } finally {
      this.#listeners.delete(listener);
      signal.removeEventListener('abort', abort);
    }
  }

  #record(chunk: Buffer): void {
    this.#chunks.push(chunk.length > OUTPUT_BYTES ? chunk.subarray(-OUTPUT_BYTES) : chunk);
    this.#bytes += this.#chunks.at(-1)!.length;
    while (this.#bytes > OUTPUT_BYTES) this.#bytes -= this.#chunks.shift()!.length;
    for (const listener of this.#listeners) listener(chunk);
  }
}

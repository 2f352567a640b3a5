/** One pod of this program: its process of the moment, what came of the one before, and the last of what it said. */
import type { Clock } from '#lib/clock.ts';
import type { EarlierRuns } from '#node/pods/earlier-runs.ts';
import type { ProgramProcess, RunProgram } from '#node/pods/program.ts';

/** Older output is forgotten. */
export const OUTPUT_BYTES = 256 * 1024;
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Whoever ran longer is no failed start: the kubelet forgets the delays of before, too. */
const LONG_MS = 600_000;
const NONE: EarlierRuns = { starts: 0, lastExit: undefined };

export interface Exit {
  readonly code: number;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

export interface RunState {
  readonly runningSinceMs: number | undefined;
  readonly lastExit: Exit | undefined;
  /** How often it was started, under whichever agent. */
  readonly starts: number;
  /** How often in a row it ended before it had run for long, under this one. */
  readonly quickExits: number;
  /** When it was asked to end. */
  readonly askedAtMs: number | undefined;
}

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
  #askedAtMs: number | undefined;

  constructor(clock: Clock, onExit: () => void, { starts, lastExit }: EarlierRuns = NONE) {
    this.#clock = clock;
    this.#onExit = onExit;
    this.#starts = starts;
    this.#lastExit = lastExit;
  }

  get state(): RunState {
    return {
      runningSinceMs: this.#process === undefined ? undefined : this.#startedAtMs,
      lastExit: this.#lastExit,
      starts: this.#starts,
      quickExits: this.#quickExits,
      askedAtMs: this.#askedAtMs,
    };
  }

  start(run: RunProgram, args: readonly string[], env: Readonly<Record<string, string>>): void {
    if (this.#process !== undefined) return;
    this.#startedAtMs = this.#clock.now();
    this.#starts++;
    const process = run(args, env);
    this.#process = process;
    process.onOutput((chunk) => this.#take(chunk));
    void this.#await(process);
  }

  async #await(process: ProgramProcess): Promise<void> {
    const code = await process.exited;
    this.#process = undefined;
    const finishedAtMs = this.#clock.now();
    this.#quickExits = finishedAtMs - this.#startedAtMs < LONG_MS ? this.#quickExits + 1 : 1;
    this.#lastExit = { code, startedAtMs: this.#startedAtMs, finishedAtMs };
    for (const listener of this.#listeners) listener(undefined);
    this.#onExit();
  }

  ask(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#askedAtMs ??= this.#clock.now();
    this.#process?.kill(signal);
  }

  read(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** What was said so far, then what comes, until the process has ended. Who has left too much unread is cut off. */
  async *follow(signal: AbortSignal): AsyncGenerator<Buffer> {
    const said = this.read();
    const news: (Buffer | undefined)[] = [said];
    if (this.#process === undefined) news.push(undefined);
    let unreadBytes = said.length;
    let wake = () => {};
    const listener = (chunk: Buffer | undefined): void => {
      unreadBytes += chunk?.length ?? 0;
      if (unreadBytes > MAX_UNREAD_BYTES) this.#listeners.delete(listener);
      news.push(unreadBytes > MAX_UNREAD_BYTES ? undefined : chunk);
      wake();
    };
    const abort = (): void => listener(undefined);
    this.#listeners.add(listener);
    signal.addEventListener('abort', abort);
    try {
      while (!signal.aborted) {
        if (news.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const chunk = news.shift();
        if (chunk === undefined) return;
        unreadBytes -= chunk.length;
        yield chunk;
      }
    } finally {
      this.#listeners.delete(listener);
      signal.removeEventListener('abort', abort);
    }
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk.length > OUTPUT_BYTES ? chunk.subarray(-OUTPUT_BYTES) : chunk);
    this.#bytes += this.#chunks.at(-1)!.length;
    while (this.#bytes > OUTPUT_BYTES) this.#bytes -= this.#chunks.shift()!.length;
    for (const listener of this.#listeners) listener(chunk);
  }
}

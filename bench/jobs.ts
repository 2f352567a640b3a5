/**
 * Jobs for a separate process: the parent sends one job at a time, and the child returns its result. The measured
 * program and the one that measures must not share an event loop.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

type JobResult = { readonly value: unknown } | { readonly failure: string };

/** The child's side: runs `work` for each job. Ends with its parent. */
export function serveJobs(work: (job: never) => unknown): void {
  process.on('message', (job) => {
    void (async () => {
      let result: JobResult;
      try {
        result = { value: (await work(job as never)) ?? null };
      } catch (error) {
        result = { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      }
      process.send?.(result);
    })();
  });
  process.on('disconnect', () => process.exit(0));
  // An interrupt from the keyboard reaches all processes of the group; the parent decides when each ends.
  process.on('SIGINT', () => {});
}

/** The parent's side. */
export class JobProcess<Job extends object> {
  readonly #child: ChildProcess;

  /** `within`: the words of a command that starts the process, such as unshare. */
  constructor(module: string, { within = [] }: { within?: readonly string[] } = {}) {
    const [execPath, ...words] = [...within, process.execPath];
    this.#child = fork(fileURLToPath(new URL(module, import.meta.url)), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execPath,
      execArgv: [...words, '--disable-warning=ExperimentalWarning'],
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async run<Value>(job: Job): Promise<Value> {
    const listening = new AbortController();
    const { signal } = listening;
    // The abort below rejects the promise that loses the race.
    const received = once(this.#child, 'message', { signal }).then(([result]) => result as JobResult);
    const exited = once(this.#child, 'exit', { signal }).then((): JobResult => ({ failure: 'its process ended' }));
    exited.catch(() => {});
    this.#child.send(job);
    const result = await Promise.race([received, exited]);
    listening.abort();
    if ('failure' in result) throw new Error(`The job failed: ${result.failure}`);
    return result.value as Value;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}

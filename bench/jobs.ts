/**
 * Work for a process of its own: the parent asks, one job at a time, and the child answers. What is measured and what
 * measures it must not share an event loop.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

type Answer = { readonly value: unknown } | { readonly failure: string };

/** The child's side: `work` takes the jobs of its own kind. Ends with its parent. */
export function answerJobs(work: (job: never) => unknown): void {
  process.on('message', (job) => {
    void (async () => {
      let answer: Answer;
      try {
        answer = { value: (await work(job as never)) ?? null };
      } catch (error) {
        answer = { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      }
      process.send?.(answer);
    })();
  });
  process.on('disconnect', () => process.exit(0));
  // An interrupt from the keyboard reaches the whole group; the parent decides what ends when.
  process.on('SIGINT', () => {});
}

/** The parent's side. */
export class JobProcess<Job extends object> {
  readonly #child: ChildProcess;

  constructor(module: string) {
    this.#child = fork(fileURLToPath(new URL(module, import.meta.url)), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async ask<Value>(job: Job): Promise<Value> {
    const listening = new AbortController();
    const { signal } = listening;
    // The one that loses is rejected by the abort, which nobody needs to hear of.
    const answered = once(this.#child, 'message', { signal }).then(([answer]) => answer as Answer);
    const exited = once(this.#child, 'exit', { signal }).then((): Answer => ({ failure: 'its process ended' }));
    exited.catch(() => {});
    this.#child.send(job);
    const answer = await Promise.race([answered, exited]);
    listening.abort();
    if ('failure' in answer) throw new Error(`Cannot do the job: ${answer.failure}`);
    return answer.value as Value;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}

/** The loop over pods that are no launchers. Their processes end with the agent; what they said is forgotten then. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { decideProgram, type ProgramAction } from '#node/pods/decide-program.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { podRole } from '#node/pods/pod-role.ts';
import { podStatus } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';
import { ProgramRun } from '#node/pods/program-run.ts';
import type { RunProgram } from '#node/pods/program.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface ProgramPodParts {
  readonly client: Client;
  readonly pods: Informer<Pod>;
  readonly runProgram: RunProgram;
  readonly hostIp: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const CONCURRENCY = 4;
const BACKOFF = { firstMs: 100, maxMs: 10_000 };

export class ProgramPods {
  readonly #parts: ProgramPodParts;
  readonly #queue: WorkQueue;
  /** By the uid of the pod; gone with it. */
  readonly #runs = new Map<string, ProgramRun>();
  readonly #own = new OwnWrites<Pod>();
  readonly #leave: (() => void)[];

  /** To be made when the informer has synced. */
  constructor(parts: ProgramPodParts) {
    const { pods, clock, log, signal } = parts;
    this.#parts = parts;
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: BACKOFF,
      work: (key) => this.#turn(key),
      onError: (pod, error, { delayMs }) => {
        if (!signal.aborted) log.error({ err: error, pod, delayMs }, 'Cannot tend a pod; trying again');
      },
    });
    this.#leave = [
      this.#own.follow(pods),
      pods.onChange((key, change) => {
        const { old, new: now } = change;
        if (old !== undefined && old.metadata.uid !== now?.metadata.uid) this.#drop(old.metadata.uid);
        if (now !== undefined && podRole(now).is !== 'launcher') this.#queue.add(key);
      }),
    ];
  }

  run(pod: Stored<Pod>): ProgramRun | undefined {
    return this.#runs.get(pod.metadata.uid);
  }

  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async stop(): Promise<void> {
    for (const leave of this.#leave) leave();
    await this.#queue.shutdown();
    for (const uid of [...this.#runs.keys()]) this.#drop(uid);
  }

  /** A pod that is gone at once takes its process with it. */
  #drop(uid: string): void {
    this.#runs.get(uid)?.ask('SIGKILL');
    this.#runs.delete(uid);
  }

  async #turn(key: string): Promise<WorkResult> {
    const { pods, clock } = this.#parts;
    const cached = pods.get(key);
    if (cached === undefined) return {};
    const pod = this.#own.newest(cached);
    const run = this.#runs.get(pod.metadata.uid)?.state;
    let result: WorkResult = {};
    for (const action of decideProgram({ pod, run, nowMs: clock.now() })) {
      result = (await this.#act(key, pod, action)) ?? result;
    }
    return result;
  }

  async #act(key: string, pod: Stored<Pod>, action: ProgramAction): Promise<WorkResult | void> {
    const { hostIp, clock } = this.#parts;
    switch (action.do) {
      case 'start':
        return this.#start(key, pod);
      case 'kill':
        return this.run(pod)?.ask(action.signal);
      case 'report': {
        const status = podStatus(pod, action.view, { hostIp, nowMs: clock.now() });
        this.#own.wrote(await reportPod(pod, status, this.#parts));
        return;
      }
      case 'removePod':
        return removePod(pod, this.#parts);
      case 'lookAgain':
        return { afterMs: action.afterMs };
      default:
        return unreachable(action);
    }
  }

  #start(key: string, pod: Stored<Pod>): void {
    const { clock, runProgram } = this.#parts;
    const { args = [], env = [] } = pod.spec.containers[0]!;
    const { uid } = pod.metadata;
    let run = this.#runs.get(uid);
    if (run === undefined) this.#runs.set(uid, (run = new ProgramRun(clock, () => this.#queue.add(key))));
    run.start(runProgram, args, Object.fromEntries(env.map(({ name, value = '' }) => [name, value])));
    this.#queue.add(key);
  }
}

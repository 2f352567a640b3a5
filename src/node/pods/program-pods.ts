/** The loop over pods that are no launchers. Their processes end with the agent; what they said is forgotten then. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { type Pod, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { decideProgram, endedState, type ProgramAction } from '#node/pods/decide-program.ts';
import { asksApi, type RunProgram } from '#node/pods/program.ts';
import { earlierRuns } from '#node/pods/earlier-runs.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { wantsToken, type PodAccess } from '#node/pods/pod-access.ts';
import { podRole } from '#node/pods/pod-role.ts';
import { podStatus, waitingView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';
import { ProgramRun } from '#node/pods/program-run.ts';
import { programVariables } from '#node/pods/program-variables.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

export interface ProgramPodParts {
  readonly client: Client;
  readonly pods: Informer<Pod>;
  readonly runProgram: RunProgram;
  /** Without it programs have no access to the API, whatever their pods say. */
  readonly access: PodAccess | undefined;
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
  #closing: Promise<unknown> = Promise.resolve();

  /** To be made when the informer has synced. */
  constructor(parts: ProgramPodParts) {
    const { pods, clock, log, signal } = parts;
    this.#parts = parts;
    const rules = new ReadRules({ name: 'program-pods', followed: [PODS], rechecks: [] });
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: BACKOFF,
      work: (key) => rules.run(() => this.#turn(key)),
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

  async idle(): Promise<void> {
    await this.#queue.idle();
    await this.#closing;
  }

  async stop(): Promise<void> {
    for (const leave of this.#leave) leave();
    await this.#queue.shutdown();
    for (const uid of [...this.#runs.keys()]) this.#drop(uid);
    await this.#closing;
  }

  /** A pod that is gone at once takes its process with it. */
  #drop(uid: string): void {
    this.#runs.get(uid)?.ask('SIGKILL');
    this.#runs.delete(uid);
    this.#closing = Promise.all([this.#closing, this.#closeAccess(uid)]);
  }

  async #closeAccess(uid: string): Promise<void> {
    const { access, log } = this.#parts;
    try {
      await access?.close(uid);
    } catch (err) {
      // It is gone when the agent starts the next time; it is worth nothing without its pod.
      log.warn({ err, uid }, 'Cannot remove the token of a pod');
    }
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
    return { ...result, ...(await this.#keepAccess(pod, result.afterMs)) };
  }

  /** What a process may do ends with it; while it runs its token is renewed, which must not keep us from anything else. */
  async #keepAccess(pod: Stored<Pod>, afterMs = Infinity): Promise<WorkResult> {
    const { access } = this.#parts;
    const run = this.run(pod);
    if (access === undefined || run === undefined) return {};
    if (run.state.runningSinceMs === undefined) {
      await this.#closeAccess(pod.metadata.uid);
      return {};
    }
    try {
      const renewMs = await access.renew(pod);
      return renewMs === undefined ? {} : { afterMs: Math.min(afterMs, renewMs) };
    } catch (failed) {
      return { failed };
    }
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

  async #start(key: string, pod: Stored<Pod>): Promise<void> {
    const { pods, clock, runProgram, signal } = this.#parts;
    const { args = [] } = pod.spec.containers[0]!;
    const { uid } = pod.metadata;
    const env = { ...programVariables(pod), ...(await this.#openAccess(pod)) };
    // While we asked for its token the pod, or all of us, may have gone.
    if (signal.aborted || pods.get(key)?.metadata.uid !== uid) return this.#closeAccess(uid);
    let run = this.#runs.get(uid);
    if (run === undefined) {
      run = new ProgramRun(clock, () => this.#queue.add(key), earlierRuns(pod, clock.now()));
      this.#runs.set(uid, run);
    }
    run.start(runProgram, args, env);
    this.#queue.add(key);
  }

  async #openAccess(pod: Stored<Pod>): Promise<Record<string, string>> {
    const { access, hostIp, clock, signal } = this.#parts;
    if (access === undefined || !asksApi(pod.spec.containers[0]!) || !wantsToken(pod)) return {};
    try {
      return await access.open(pod);
    } catch (error) {
      await this.#closeAccess(pod.metadata.uid);
      // One that ran before has a state that says more.
      if (this.run(pod) === undefined && !signal.aborted) {
        const view = waitingView('CreateContainerConfigError', `no token: ${(error as Error).message}`);
        // It may have run under an agent before us: phases do not go back.
        const { phase = view.phase } = pod.status ?? {};
        const { lastExit } = earlierRuns(pod, clock.now());
        const last = lastExit === undefined ? {} : { last: endedState(lastExit) };
        const status = podStatus(pod, { ...view, phase, ...last }, { hostIp, nowMs: clock.now() });
        this.#own.wrote(await reportPod(pod, status, this.#parts));
      }
      throw error;
    }
  }
}

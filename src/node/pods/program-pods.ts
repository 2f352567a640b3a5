/** The control loop over pods that are not launchers. Their processes end with the agent, and their output is lost then. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { type Pod, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { decideProgram, exitState, type ProgramAction } from '#node/pods/decide-program.ts';
import { needsApiAccess, type RunProgram } from '#node/pods/program.ts';
import { readEarlierRuns } from '#node/pods/earlier-runs.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { requestsToken, type PodAccess } from '#node/pods/pod-access.ts';
import { podRole } from '#node/pods/pod-role.ts';
import { buildPodStatus, waitingView } from '#node/pods/pod-status.ts';
import { removePod, reportPod } from '#node/pods/pod-writer.ts';
import { ProgramRun } from '#node/pods/program-run.ts';
import { programVariables } from '#node/pods/program-variables.ts';
import { ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

interface ProgramPodParts {
  readonly client: Client;
  readonly pods: Informer<Pod>;
  readonly runProgram: RunProgram;
  /** Access of programs to the API; without it they have none. */
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
  /** Runs by pod uid, until the pod is gone. */
  readonly #runs = new Map<string, ProgramRun>();
  readonly #own = new OwnWrites<Pod>();
  readonly #unsubscribes: (() => void)[];
  #closing: Promise<unknown> = Promise.resolve();

  /** Create it when the informer has synced. */
  constructor(parts: ProgramPodParts) {
    const { pods, clock, log, signal } = parts;
    this.#parts = parts;
    const rules = new ReadRules({ name: 'program-pods', followed: [PODS], rechecks: [] });
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: BACKOFF,
      work: (key) => rules.run(() => this.#reconcile(key)),
      onError: (pod, error, { delayMs }) => {
        if (!signal.aborted) log.error({ err: error, pod, delayMs }, 'Cannot reconcile a pod; it will be tried again');
      },
    });
    this.#unsubscribes = [
      this.#own.track(pods),
      pods.onChange((key, change) => {
        const { old, new: now } = change;
        if (old !== undefined && old.metadata.uid !== now?.metadata.uid) this.#drop(old.metadata.uid);
        if (now !== undefined && podRole(now).is !== 'launcher') this.#queue.add(key);
      }),
    ];
  }

  runOf(pod: Stored<Pod>): ProgramRun | undefined {
    return this.#runs.get(pod.metadata.uid);
  }

  async idle(): Promise<void> {
    await this.#queue.idle();
    await this.#closing;
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#queue.shutdown();
    for (const uid of [...this.#runs.keys()]) this.#drop(uid);
    await this.#closing;
  }

  /** Ends the process of a pod that is gone. */
  #drop(uid: string): void {
    this.#runs.get(uid)?.kill('SIGKILL');
    this.#runs.delete(uid);
    this.#closing = Promise.all([this.#closing, this.#closeAccess(uid)]);
  }

  async #closeAccess(uid: string): Promise<void> {
    const { access, log } = this.#parts;
    try {
      await access?.close(uid);
    } catch (err) {
      // The next start of the agent removes it, and it is invalid without its pod.
      log.warn({ err, uid }, 'Cannot remove the token of a pod; it will be removed at the next start of the agent');
    }
  }

  async #reconcile(key: string): Promise<WorkResult> {
    const { pods, clock } = this.#parts;
    const cached = pods.get(key);
    if (cached === undefined) return {};
    const pod = this.#own.newest(cached);
    const run = this.#runs.get(pod.metadata.uid)?.state;
    let result: WorkResult = {};
    for (const action of decideProgram({ pod, run, nowMs: clock.now() })) {
      result = (await this.#act(key, pod, action)) ?? result;
    }
    return { ...result, ...(await this.#maintainAccess(pod, result.afterMs)) };
  }

  /** Removes the token of an ended process and renews that of a running one. A failure must not stop other actions. */
  async #maintainAccess(pod: Stored<Pod>, afterMs = Infinity): Promise<WorkResult> {
    const { access } = this.#parts;
    const run = this.runOf(pod);
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
        return this.runOf(pod)?.kill(action.signal);
      case 'report': {
        const status = buildPodStatus(pod, action.view, { hostIp, nowMs: clock.now() });
        this.#own.record(await reportPod(pod, status, this.#parts));
        return;
      }
      case 'removePod':
        return removePod(pod, this.#parts);
      case 'recheck':
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
    // The pod may have been deleted, or the agent stopped, while the token was requested.
    if (signal.aborted || pods.get(key)?.metadata.uid !== uid) return this.#closeAccess(uid);
    let run = this.#runs.get(uid);
    if (run === undefined) {
      run = new ProgramRun(clock, () => this.#queue.add(key), readEarlierRuns(pod, clock.now()));
      this.#runs.set(uid, run);
    }
    run.start(runProgram, args, env);
    this.#queue.add(key);
  }

  async #openAccess(pod: Stored<Pod>): Promise<Record<string, string>> {
    const { access, hostIp, clock, signal } = this.#parts;
    if (access === undefined || !needsApiAccess(pod.spec.containers[0]!) || !requestsToken(pod)) return {};
    try {
      return await access.open(pod);
    } catch (error) {
      await this.#closeAccess(pod.metadata.uid);
      // The state of a pod that ran before is more useful than this error.
      if (this.runOf(pod) === undefined && !signal.aborted) {
        const view = waitingView('CreateContainerConfigError', `Cannot get a token: ${(error as Error).message}`);
        // The pod may have run under an earlier agent, and its phase must not go back.
        const { phase = view.phase } = pod.status ?? {};
        const { lastExit } = readEarlierRuns(pod, clock.now());
        const last = lastExit === undefined ? {} : { last: exitState(lastExit) };
        const status = buildPodStatus(pod, { ...view, phase, ...last }, { hostIp, nowMs: clock.now() });
        this.#own.record(await reportPod(pod, status, this.#parts));
      }
      throw error;
    }
  }
}

/** Runs the Job that changes machine types in this process, against a simulated plane, and kills it on request. */
import assert from 'node:assert/strict';
import { TRANSITION_JOBS, type JobReference } from '#api/machine-types/kinds.ts';
import { JOB_PREFIX, TRANSITION_ACCOUNT } from '#api/machine-types/names.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { readPlan, readProgress } from '#api/machine-types/plan.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { TransportError, type Transport, type TransportRequest } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { silentLog } from '#lib/log.ts';
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';
import { runTransition } from '#transition/run-transition.ts';

/** The Job's own account, so that tests notice what its role does not allow. */
const JOB_USER = {
  name: `system:serviceaccount:${SYSTEM_NAMESPACE}:${TRANSITION_ACCOUNT}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`, 'system:authenticated'],
};
const STEP_MS = 1000;
const MAX_STEPS = 4000;
const DEFAULTS = { restartNow: false, maxRestarts: 10, maxFailures: Infinity } as const;

export interface TransitionRun {
  /** Undefined while the Job runs; `killed` after a kill. */
  readonly outcome: 'done' | 'failed' | 'killed' | undefined;
  kill(): Promise<void>;
}

export interface RunOptions {
  /** Kills the Job after this many writes, before it receives the answer to the last one. */
  readonly killAfter?: number;
  /** Called with the VM before each request for a restart. */
  readonly onVerb?: (vm: string) => void | Promise<void>;
}

export class TransitionScene {
  readonly #plane: VmPlane;
  readonly job: JobReference;
  readonly #options: TransitionOptions;

  constructor(plane: VmPlane, job: JobReference, options: TransitionOptions) {
    this.#plane = plane;
    this.job = job;
    this.#options = options;
  }

  /** Creates a suspended Job, which only the scene runs. */
  static async create(
    plane: VmPlane,
    options: Partial<TransitionOptions> & Pick<TransitionOptions, 'glob'>,
  ): Promise<TransitionScene> {
    const containers = [{ name: 'machine-types', image: 'selfsame/selfsame' }];
    const template = { spec: { restartPolicy: 'OnFailure', containers } };
    const spec = { suspend: true, template };
    const { metadata } = await plane.server.api.ok(
      'POST',
      `/apis/batch/v1/namespaces/${SYSTEM_NAMESPACE}/${TRANSITION_JOBS.plural}`,
      { body: { apiVersion: 'batch/v1', kind: TRANSITION_JOBS.kind, metadata: { generateName: JOB_PREFIX }, spec } },
    );
    const job = { namespace: SYSTEM_NAMESPACE, name: metadata.name, uid: metadata.uid };
    return new TransitionScene(plane, job, { ...DEFAULTS, ...options });
  }

  start({ killAfter = Infinity, onVerb = () => {} }: RunOptions = {}): TransitionRun {
    const killing = new AbortController();
    const { clock } = this.#plane;
    const handler: Loose = async (request: Loose) => await this.#plane.server.api.core.handler(request);
    const transport = createInProcessTransport({ handler, user: JOB_USER, userAgent: 'test' });
    let writes = 0;
    const counting: Transport = {
      stream: (request) => transport.stream(request),
      async request(request) {
        killing.signal.throwIfAborted();
        const vm = vmRestartedBy(request);
        if (vm !== undefined) await onVerb(vm);
        const answer = await transport.request({ ...request, signal: killing.signal }).catch((cause: unknown) => {
          throw cause instanceof ApiError ? cause : new TransportError('the server is away', { cause });
        });
        if (request.method !== 'GET' && ++writes >= killAfter) killing.abort(new Error('killed'));
        killing.signal.throwIfAborted();
        return answer;
      },
    };
    const state: { outcome: TransitionRun['outcome']; error?: Error } = { outcome: undefined };
    const ended = runTransition({
      client: createClient(counting),
      job: this.job,
      options: this.#options,
      clock,
      log: silentLog,
      signal: killing.signal,
    }).then(
      (outcome) => void (state.outcome = outcome),
      (error: unknown) => {
        if (!killing.signal.aborted) throw error;
        state.outcome = 'killed';
      },
    );
    ended.catch((error: unknown) => (state.error = error instanceof Error ? error : new Error(String(error))));
    return {
      get outcome() {
        if (state.error !== undefined) throw state.error;
        return state.outcome;
      },
      async kill() {
        killing.abort(new Error('killed'));
        await ended;
      },
    };
  }

  /** Advances the clock in steps of a second, so that work of one second completes before the next. */
  async advance(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) await this.#plane.clock.advance(STEP_MS);
    await this.#plane.settle();
  }

  /** Advances the clock until the Job has ended. */
  async awaitEnd(running: TransitionRun): Promise<TransitionRun['outcome']> {
    for (let step = 0; running.outcome === undefined; step++) {
      assert.ok(step < MAX_STEPS, `the Job does not end: ${JSON.stringify(await this.states())}`);
      await this.#plane.clock.advance(STEP_MS);
    }
    return running.outcome;
  }

  async run(options?: RunOptions): Promise<TransitionRun['outcome']> {
    return await this.awaitEnd(this.start(options));
  }

  /** Returns `state: reason` for each VM of the plan, by name, as the Job recorded it. */
  async states(): Promise<Record<string, string>> {
    const { items } = await this.#plane.server.api.ok(
      'GET',
      `/api/v1/namespaces/${this.job.namespace}/${CONFIG_MAPS.plural}`,
    );
    const notes = readProgress(this.job, items);
    const entries = readPlan(this.job, items) ?? [];
    return Object.fromEntries(
      entries.map(({ name }, index) => {
        const { state, reason } = notes.get(index) ?? { state: 'pending' };
        return [name, reason === undefined ? state : `${state}: ${reason}`];
      }),
    );
  }
}

const RESTARTS: ReadonlySet<string> = new Set(['/status/stateChangeRequests', '/spec/runStrategy']);

/** Returns the VM that the patch stops or restarts, if it does. */
function vmRestartedBy({ method, path, body }: TransportRequest): string | undefined {
  if (method !== 'PATCH' || !Array.isArray(body)) return undefined;
  const isRestart = body.some(({ path: changed }: Loose) => RESTARTS.has(changed));
  return isRestart ? /\/virtualmachines\/([^/]+)/.exec(path)?.[1] : undefined;
}

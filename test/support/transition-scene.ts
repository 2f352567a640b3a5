/** The Job that changes machine types, run in this process against a simulated plane, and killed at will. */
import assert from 'node:assert/strict';
import { JOBS, type JobReference } from '#api/machine-types/kinds.ts';
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

/** With its own account: what its role does not allow shows here. */
const JOB_USER = {
  name: `system:serviceaccount:${SYSTEM_NAMESPACE}:${TRANSITION_ACCOUNT}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`, 'system:authenticated'],
};
const STEP_MS = 1000;
const MAX_STEPS = 4000;
const DEFAULTS = { restartNow: false, maxRestarts: 10, maxFailures: Infinity } as const;

export interface Running {
  /** Undefined while it runs; `killed` after a kill. */
  readonly outcome: 'done' | 'failed' | 'killed' | undefined;
  kill(): Promise<void>;
}

export interface RunOptions {
  /** It is killed after that many writes, before it hears of the last. */
  readonly killAfter?: number;
  /** Gets the VM of each restart, before it is asked for. */
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

  /** A Job that nobody runs but the scene. */
  static async make(
    plane: VmPlane,
    options: Partial<TransitionOptions> & Pick<TransitionOptions, 'glob'>,
  ): Promise<TransitionScene> {
    const containers = [{ name: 'machine-types', image: 'selfsame/selfsame' }];
    const template = { spec: { restartPolicy: 'OnFailure', containers } };
    const spec = { suspend: true, template };
    const { metadata } = await plane.server.api.ok(
      'POST',
      `/apis/batch/v1/namespaces/${SYSTEM_NAMESPACE}/${JOBS.plural}`,
      { body: { apiVersion: 'batch/v1', kind: JOBS.kind, metadata: { generateName: JOB_PREFIX }, spec } },
    );
    const job = { namespace: SYSTEM_NAMESPACE, name: metadata.name, uid: metadata.uid };
    return new TransitionScene(plane, job, { ...DEFAULTS, ...options });
  }

  start({ killAfter = Infinity, onVerb = () => {} }: RunOptions = {}): Running {
    const killing = new AbortController();
    const { clock } = this.#plane;
    const handler: Loose = async (request: Loose) => await this.#plane.server.api.core.handler(request);
    const transport = createInProcessTransport({ handler, user: JOB_USER, userAgent: 'test' });
    let writes = 0;
    const counting: Transport = {
      stream: (request) => transport.stream(request),
      async request(request) {
        killing.signal.throwIfAborted();
        const restarted = restartedBy(request);
        if (restarted !== undefined) await onVerb(restarted);
        const answer = await transport.request({ ...request, signal: killing.signal }).catch((cause: unknown) => {
          throw cause instanceof ApiError ? cause : new TransportError('the server is away', { cause });
        });
        if (request.method !== 'GET' && ++writes >= killAfter) killing.abort(new Error('killed'));
        killing.signal.throwIfAborted();
        return answer;
      },
    };
    const state: { outcome: Running['outcome']; error?: Error } = { outcome: undefined };
    const over = runTransition({
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
    over.catch((error: unknown) => (state.error = error instanceof Error ? error : new Error(String(error))));
    return {
      get outcome() {
        if (state.error !== undefined) throw state.error;
        return state.outcome;
      },
      async kill() {
        killing.abort(new Error('killed'));
        await over;
      },
    };
  }

  /** In steps, so that what waits for the next second has come through before the one after. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) await this.#plane.clock.advance(STEP_MS);
    await this.#plane.settle();
  }

  /** Time passes until it has ended. */
  async ends(running: Running): Promise<Running['outcome']> {
    for (let step = 0; running.outcome === undefined; step++) {
      assert.ok(step < MAX_STEPS, `the job does not end: ${JSON.stringify(await this.states())}`);
      await this.#plane.clock.advance(STEP_MS);
    }
    return running.outcome;
  }

  async run(options?: RunOptions): Promise<Running['outcome']> {
    return await this.ends(this.start(options));
  }

  /** `done: reason` by the name of the VM, as the Job has noted it. */
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

/** The VM that a patch stops, or restarts. */
function restartedBy({ method, path, body }: TransportRequest): string | undefined {
  if (method !== 'PATCH' || !Array.isArray(body)) return undefined;
  const isRestart = body.some(({ path: changed }: Loose) => RESTARTS.has(changed));
  return isRestart ? /\/virtualmachines\/([^/]+)/.exec(path)?.[1] : undefined;
}

/**
 * The Job controllers on a test API, with a fake clock and a stand-in for the node agent. Shared by all Job scenarios.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { jobController } from '#engine/controllers/job/job-controller.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { ttlAfterFinishedController } from '#engine/controllers/ttl-after-finished.ts';
import type { ApiHandler, ApiRequest } from '#engine/request/request.ts';
import { silentLog } from '#lib/log.ts';
import { EventRecorder } from '#runtime/events.ts';
import { createBareNamespace } from '#test/support/bare-namespace.ts';
import { createPodRunner, type PodRunner } from '#test/support/pod-runner.ts';
import { ADMIN, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

export const JOBS = '/apis/batch/v1/namespaces/default/jobs';
export const PODS = '/api/v1/namespaces/default/pods';
const EVENTS = '/api/v1/namespaces/default/events';

/** Called with each request of the controllers; throws to refuse it. */
export type RequestCheck = (request: ApiRequest) => void;

export interface JobScene {
  readonly api: TestApi;
  readonly clock: FakeClock;
  readonly node: PodRunner;
  /** Waits until no controller has anything left to do; fails if they never settle. */
  settle(): Promise<void>;
  advance(seconds: number): Promise<void>;
  job(name?: string): Promise<Loose>;
  pods(): Promise<Loose[]>;
  /** Returns the pods that have neither ended nor are being deleted. */
  activePods(): Promise<Loose[]>;
  events(): Promise<string[]>;
  /** Withholds changes of Jobs from the controllers until the returned function is called. */
  holdJobs(): () => void;
  /** Stops the controllers and starts new ones. */
  restart(gate?: RequestCheck): Promise<void>;
}

export async function startJobScene(t: TestContext, gate?: RequestCheck): Promise<JobScene> {
  const clock = new FakeClock();
  const api = await startTestApi({ clock, controllers: false });
  const delay: JobDelay = { jobs: Promise.resolve() };
  await createBareNamespace(api, 'default');
  let running = await startJobControllers(api, { clock, news: delay, gate });
  let releaseJobs = () => {};
  t.after(async () => {
    releaseJobs();
    await running.stop();
    await api.stop();
  });
  const settleControllers = async (): Promise<void> => {
    // Several quiet rounds, so that a controller that fights itself is detected.
    for (let round = 0, quiet = 0; quiet < 3; round++) {
      assert.ok(round < 500, 'the controllers do not settle');
      const before = api.store.revision;
      await settle();
      await running.idle();
      quiet = api.store.revision === before ? quiet + 1 : 0;
    }
  };
  const list = async (url: string): Promise<Loose[]> => (await api.ok('GET', url)).items;
  return {
    api,
    clock,
    node: createPodRunner(api, clock),
    settle: settleControllers,
    async advance(seconds) {
      await clock.advance(seconds * 1000);
      await settleControllers();
    },
    job: (name = 'work') => api.ok('GET', `${JOBS}/${name}`),
    pods: () => list(PODS),
    activePods: async () =>
      (await list(PODS)).filter(
        ({ metadata, status }) => !metadata.deletionTimestamp && ['Pending', 'Running'].includes(status.phase),
      ),
    events: async () =>
      (await list(EVENTS))
        .sort((a, b) => a.metadata.resourceVersion - b.metadata.resourceVersion)
        .map(({ type, reason, message }) => `${type} ${reason} ${message}`),
    holdJobs() {
      const { promise, resolve } = Promise.withResolvers<void>();
      delay.jobs = promise;
      releaseJobs = resolve;
      return resolve;
    },
    async restart(nextGate) {
      await running.stop();
      running = await startJobControllers(api, { clock, news: delay, gate: nextGate });
      await settleControllers();
    },
  };
}

/** The promise that each event of the Job watch waits for. */
interface JobDelay {
  jobs: Promise<void>;
}

interface ControllerOptions {
  readonly clock: FakeClock;
  readonly news: JobDelay;
  readonly gate?: RequestCheck | undefined;
}

function delayJobs(client: Client, news: JobDelay): Client {
  return {
    ...client,
    async *watch(type, options) {
      for await (const event of client.watch(type, options)) {
        if (type.plural === 'jobs') await news.jobs;
        yield event;
      }
    },
  };
}

async function startJobControllers(api: TestApi, { clock, news, gate = () => {} }: ControllerOptions) {
  const stopping = new AbortController();
  const { signal } = stopping;
  const log = silentLog;
  const handler: ApiHandler = (request) => {
    gate(request);
    return api.core.handler(request);
  };
  const client = delayJobs(createClient(createInProcessTransport({ handler, user: ADMIN, userAgent: 'test' })), news);
  const informers = new SharedInformers({ reader: client, clock, log, signal });
  const events = new EventRecorder({ writer: client, clock, log, component: 'job-controller', signal });
  const registry = api.core.registry;
  const parts = { client, informer: informers.of.bind(informers), registry, clock, log, events, signal };
  const controllers = [jobController, ttlAfterFinishedController].flatMap(({ start }) => start(parts));
  await informers.waitForSync();
  return {
    async idle() {
      for (const controller of controllers) await controller.idle();
      await events.idle();
    },
    async stop() {
      stopping.abort();
      await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

export function aJob(spec: Loose = {}, { restartPolicy = 'Never', metadata = {}, ...template }: Loose = {}): Loose {
  const containers = [{ name: 'main', image: 'busybox' }];
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work' },
    spec: { ...spec, template: { metadata, spec: { restartPolicy, containers, ...template } } },
  };
}

export async function submitJob(scene: JobScene, job: Loose): Promise<Loose> {
  const made = await scene.api.ok('POST', JOBS, { body: job });
  await scene.settle();
  return made;
}

export async function patchJob(scene: JobScene, spec: Loose): Promise<void> {
  await scene.api.ok('PATCH', `${JOBS}/work`, { body: { spec } });
  await scene.settle();
}

/** Returns `Complete: CompletionsReached` for each condition that is true. */
export function trueConditions({ status }: Loose): string[] {
  return (status.conditions ?? [])
    .filter((condition: Loose) => condition.status === 'True')
    .map(({ type, reason }: Loose) => `${type}: ${reason}`);
}

export const SUCCEEDED_CONDITIONS = ['SuccessCriteriaMet: CompletionsReached', 'Complete: CompletionsReached'];
export const failedConditions = (reason: string) => [`FailureTarget: ${reason}`, `Failed: ${reason}`];

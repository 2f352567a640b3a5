/** The Job controllers on a test API with a fake clock and a stand-in for the node agent: what scenarios of Jobs share. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#client/testing/fake-clock.ts';
import { jobController } from '#engine/controllers/job/job-controller.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { ttlAfterFinishedController } from '#engine/controllers/ttl-after-finished.ts';
import type { ApiHandler, ApiRequest } from '#engine/request.ts';
import { silentLog } from '#lib/log.ts';
import { EventRecorder } from '#runtime/events.ts';
import { makeBareNamespace } from '#test/support/bare-namespace.ts';
import { createPodRunner, type PodRunner } from '#test/support/pod-runner.ts';
import { ADMIN, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

export const JOBS = '/apis/batch/v1/namespaces/default/jobs';
export const PODS = '/api/v1/namespaces/default/pods';
const EVENTS = '/api/v1/namespaces/default/events';

/** Stands between the controllers and the API: may refuse what they ask for. */
export type Gate = (request: ApiRequest) => void;

export interface Scene {
  readonly api: TestApi;
  readonly clock: FakeClock;
  readonly node: PodRunner;
  /** What waits for nothing but others is done; fails if it never ends. */
  settle(): Promise<void>;
  advance(seconds: number): Promise<void>;
  job(name?: string): Promise<Loose>;
  pods(): Promise<Loose[]>;
  /** Those that neither ended nor were told to go. */
  active(): Promise<Loose[]>;
  events(): Promise<string[]>;
  /** The controllers hear nothing new of Jobs until the answer is called. */
  holdJobs(): () => void;
  /** Other controllers take over; the old ones are stopped. */
  restart(gate?: Gate): Promise<void>;
}

export async function startScene(t: TestContext, gate?: Gate): Promise<Scene> {
  const clock = new FakeClock();
  const api = await startTestApi({ clock, controllers: false });
  const news: News = { jobs: Promise.resolve() };
  await makeBareNamespace(api, 'default');
  let running = await startJobControllers(api, { clock, news, gate });
  let letGo = () => {};
  t.after(async () => {
    letGo();
    await running.stop();
    await api.stop();
  });
  const rest = async (): Promise<void> => {
    // One more round than changes, so that a controller that fights itself is found out.
    for (let round = 0, quiet = 0; quiet < 3; round++) {
      assert.ok(round < 500, 'the controllers do not come to rest');
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
    settle: rest,
    async advance(seconds) {
      await clock.advance(seconds * 1000);
      await rest();
    },
    job: (name = 'work') => api.ok('GET', `${JOBS}/${name}`),
    pods: () => list(PODS),
    active: async () =>
      (await list(PODS)).filter(
        ({ metadata, status }) => !metadata.deletionTimestamp && ['Pending', 'Running'].includes(status.phase),
      ),
    events: async () =>
      (await list(EVENTS))
        .sort((a, b) => a.metadata.resourceVersion - b.metadata.resourceVersion)
        .map(({ type, reason, message }) => `${type} ${reason} ${message}`),
    holdJobs() {
      const { promise, resolve } = Promise.withResolvers<void>();
      news.jobs = promise;
      letGo = resolve;
      return resolve;
    },
    async restart(next) {
      await running.stop();
      running = await startJobControllers(api, { clock, news, gate: next });
      await rest();
    },
  };
}

/** When the next event of a watch comes through. */
interface News {
  jobs: Promise<void>;
}

interface ControllerOptions {
  readonly clock: FakeClock;
  readonly news: News;
  readonly gate?: Gate | undefined;
}

function delayed(client: Client, news: News): Client {
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
  const client = delayed(createClient(createInProcessTransport({ handler, user: ADMIN, userAgent: 'test' })), news);
  const informers = new SharedInformers({ reader: client, clock, log, signal });
  const events = new EventRecorder({ writer: client, clock, log, component: 'job-controller', signal });
  const registry = api.core.registry;
  const parts = { client, informer: informers.of.bind(informers), registry, clock, log, events, signal };
  const controllers = [jobController, ttlAfterFinishedController].flatMap(({ start }) => start(parts));
  await informers.synced();
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

export async function submit(scene: Scene, job: Loose): Promise<Loose> {
  const made = await scene.api.ok('POST', JOBS, { body: job });
  await scene.settle();
  return made;
}

export async function change(scene: Scene, spec: Loose): Promise<void> {
  await scene.api.ok('PATCH', `${JOBS}/work`, { body: { spec } });
  await scene.settle();
}

/** `Complete: CompletionsReached` for each condition that holds. */
export function standing({ status }: Loose): string[] {
  return (status.conditions ?? [])
    .filter((condition: Loose) => condition.status === 'True')
    .map(({ type, reason }: Loose) => `${type}: ${reason}`);
}

export const SUCCEEDED = ['SuccessCriteriaMet: CompletionsReached', 'Complete: CompletionsReached'];
export const failedBy = (reason: string) => [`FailureTarget: ${reason}`, `Failed: ${reason}`];

/** The garbage collector on a test API without other controllers, with a way to wait until it has nothing left to do. */
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { garbageCollector } from '#engine/controllers/garbage-collector/garbage-collector.ts';
import { SYSTEM_NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { namespaceController } from '#engine/controllers/namespace/namespace.ts';
import type { KubeObject } from '#kube/meta.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { EventNote } from '#runtime/events.ts';
import { ADMIN, startTestApi, type TestApi, type TestApiOptions } from '#test/support/test-api.ts';

/** Starts an API with the controllers of namespaces and CRDs only. */
export async function startBareApi({ store, clock }: Pick<TestApiOptions, 'store' | 'clock'> = {}): Promise<TestApi> {
  const api = await startTestApi({ store, clock, controllers: false });
  for (const name of SYSTEM_NAMESPACES) {
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    // After a restart they exist.
    await api.call('POST', '/api/v1/namespaces', { body });
  }
  const started = [
    await startEngineController(crdController, api, { clock }),
    await startEngineController(namespaceController, api, { clock }),
  ];
  return {
    ...api,
    async stop() {
      await Promise.all(started.map((controller) => controller.stop()));
      await api.stop();
    },
  };
}

export interface StartOptions {
  readonly clock?: Clock | undefined;
  /** Wraps the client of the controller. */
  readonly through?: (client: Client) => Client;
}

export interface StartedController {
  readonly controller: RunningController;
  /** Events that the controller recorded. */
  readonly notes: readonly (EventNote & { readonly about: KubeObject })[];
  stop(): Promise<void>;
}

export async function startEngineController(
  { start }: EngineController,
  api: TestApi,
  { clock = systemClock, through = (client) => client }: StartOptions = {},
): Promise<StartedController> {
  const transport = createInProcessTransport({ handler: api.core.handler, user: ADMIN, userAgent: 'test' });
  const client = through(createClient(transport));
  const stopping = new AbortController();
  const { signal } = stopping;
  const notes: (EventNote & { about: KubeObject })[] = [];
  const informers: Promise<void>[] = [];
  const started = start({
    client,
    clock,
    log: silentLog,
    registry: api.core.registry,
    signal,
    events: { record: (about, note) => void notes.push({ ...note, about }) },
    informer(type) {
      const informer = new Informer({ reader: client, type, clock, log: silentLog });
      informers.push(informer.start({ signal }));
      return informer;
    },
  });
  const controller = 'stopped' in started ? started : started[0]!;
  await controller.idle();
  return {
    controller,
    notes,
    async stop() {
      stopping.abort();
      await Promise.all([controller.stopped, ...informers]);
    },
  };
}

export interface Collector extends StartedController {
  /** Resolves when the collector has seen everything written so far and has acted on it. */
  settle(): Promise<void>;
}

export async function startCollector(api: TestApi, options: StartOptions = {}): Promise<Collector> {
  const started = await startEngineController(garbageCollector, api, options);
  let markers = 0;
  return {
    ...started,
    async settle() {
      // The collector sees ConfigMaps in order: when it has deleted the marker, it has seen everything before the marker.
      const name = `marker-${++markers}`;
      const watch = await api.watch(`${MARKERS}?watch=1&fieldSelector=metadata.name=${name}`);
      const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: `nobody-${name}` }];
      const metadata = { name, ownerReferences };
      await api.ok('POST', MARKERS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
      await watch.awaitEvents(2);
      watch.stop();
      await started.controller.idle();
    },
  };
}

const MARKERS = '/api/v1/namespaces/kube-public/configmaps';

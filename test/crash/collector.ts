/**
 * The garbage collector on a test API that has no other, started from its own value, and a way to know that it has come
 * to rest.
 */
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { garbageCollector } from '#engine/controllers/garbage-collector/garbage-collector.ts';
import { SYSTEM_NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { namespaceController } from '#engine/controllers/namespace.ts';
import type { KubeObject } from '#kube/meta.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { EventNote } from '#runtime/events.ts';
import { ADMIN, startTestApi, type TestApi, type TestApiOptions } from '#test/support/test-api.ts';

/** Namespaces and definitions have their controllers; nobody else acts. */
export async function startBareApi({ store, clock }: Pick<TestApiOptions, 'store' | 'clock'> = {}): Promise<TestApi> {
  const api = await startTestApi({ store, clock, controllers: false });
  for (const name of SYSTEM_NAMESPACES) {
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    // After a restart they are there.
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
  /** Stands between the controller and the API. */
  readonly through?: (client: Client) => Client;
}

export interface StartedController {
  readonly controller: RunningController;
  /** Events that it has told. */
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
  /** Resolves when it has seen everything that was written so far and has done all that followed from it. */
  settle(): Promise<void>;
}

export async function startCollector(api: TestApi, options: StartOptions = {}): Promise<Collector> {
  const started = await startEngineController(garbageCollector, api, options);
  let markers = 0;
  return {
    ...started,
    async settle() {
      // It sees the ConfigMaps in order: when garbage made now is gone, it has seen all that was there before.
      const name = `marker-${++markers}`;
      const watch = await api.watch(`${MARKERS}?watch=1&fieldSelector=metadata.name=${name}`);
      const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: `nobody-${name}` }];
      const metadata = { name, ownerReferences };
      await api.ok('POST', MARKERS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata } });
      await watch.got(2);
      watch.stop();
      await started.controller.idle();
    },
  };
}

const MARKERS = '/api/v1/namespaces/kube-public/configmaps';

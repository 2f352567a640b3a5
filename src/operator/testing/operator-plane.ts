/** An engine with only the operator running; scenarios start the services that they need. */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { applyBootstrap, INFORMERS_ACCOUNT } from '#operator/bootstrap.ts';
import { operatorController, waitUntilServed } from '#operator/operator-controller.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { noEvents } from '#runtime/events.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import type { Informer } from '#client/informer.ts';
import { ADMIN, type TestApi } from '#test/support/test-api.ts';

export interface OperatorPlane {
  readonly metrics: MetricRegistry;
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  /** Returns a client with the permissions of one of our accounts. */
  client(account: string): Client;
  /** Starts another controller with its own account. It stops with the operator, or when `end` is called. */
  run(controller: Runnable): { end(): Promise<void> };
  /** Waits until engine, operator and other controllers are idle. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

interface Runnable {
  readonly account: string;
  start(parts: ControllerParts): readonly RunningController[];
}

/** Returns the user of one of our service accounts. */
export function asAccount(name: string) {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`, 'system:authenticated'];
  return { name: `system:serviceaccount:${SYSTEM_NAMESPACE}:${name}`, groups };
}

/** Starts the operator. `api` runs with its controllers; the caller stops it. */
export async function startOperator(api: TestApi): Promise<OperatorPlane> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const clientOf = (user: typeof ADMIN): Client =>
    createClient(createInProcessTransport({ handler: api.core.handler, user, userAgent: 'test' }));
  await applyBootstrap(clientOf(ADMIN));
  const shared = { clock: systemClock, log: silentLog, signal };
  const informers = new SharedInformers({ ...shared, reader: clientOf(asAccount(INFORMERS_ACCOUNT)) });
  const informer: OperatorPlane['informer'] = (type) => informers.of(type);
  const metrics = new MetricRegistry();
  const parts = {
    ...shared,
    informer,
    client: clientOf(asAccount(operatorController().account)),
    events: noEvents,
    metrics,
  };
  const running = new Set(operatorController().start(parts));
  const client = (account: string) => clientOf(asAccount(account));
  await waitUntilServed(parts);
  return {
    metrics,
    informer,
    client,
    run({ account, start }) {
      const ending = new AbortController();
      const started = start({
        ...parts,
        client: client(account),
        signal: AbortSignal.any([signal, ending.signal]),
      });
      for (const controller of started) running.add(controller);
      return {
        async end() {
          ending.abort();
          await Promise.all(started.map(({ stopped }) => stopped));
          for (const controller of started) running.delete(controller);
        },
      };
    },
    async settle() {
      for (let revision = -1; revision !== api.store.revision;) {
        revision = api.store.revision;
        await Promise.all([...running].map((controller) => controller.idle()));
        await api.settle();
        await api.core.aggregation.settled();
        await api.settle();
      }
    },
    async stop() {
      stopping.abort();
      await Promise.all([...[...running].map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

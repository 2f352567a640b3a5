/** A cluster without machines: the API with pods/binding and pods/eviction, the controllers under test, a fake clock. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { admissionChain } from '#engine/admission/admission.ts';
import { namespaceLifecycle } from '#engine/admission/namespace-lifecycle.ts';
import { taintNewNodes } from '#engine/admission/node-taints.ts';
import { tolerateLostNodes } from '#engine/admission/pod-tolerations.ts';
import { priorityAdmission, priorityClassValidation } from '#engine/admission/priority.ts';
import { noAggregation } from '#engine/aggregation/aggregation.ts';
import { createApi } from '#engine/dispatch/api.ts';
import { rbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { crdController } from '#engine/controllers/custom-resource-definition.ts';
import { disruptionController } from '#engine/controllers/disruption/disruption.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { accountUser, INFORMERS } from '#engine/controllers/identities.ts';
import { nodeLifecycleController } from '#engine/controllers/node-lifecycle/node-lifecycle.ts';
import { ensureRbacDefaults } from '#engine/controllers/rbac/rbac-defaults.ts';
import { schedulerController } from '#engine/controllers/scheduler/scheduler.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { createEngineMetrics } from '#engine/dispatch/metrics.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { trackCustomKinds } from '#engine/custom-kinds/track-custom-kinds.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { Registry } from '#engine/registry/registry.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { podBinding } from '#engine/subresources/pod-binding.ts';
import { podEviction } from '#engine/subresources/pod-eviction.ts';
import { microTimestamp, timestamp } from '#lib/clock.ts';
import { FairTurns } from '#lib/fair-turns.ts';
import { silentLog } from '#lib/log.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { EventRecorder } from '#runtime/events.ts';
import { ADMIN, type Loose } from '#test/support/test-api.ts';

export interface SceneAnswer {
  readonly status: number;
  readonly body: Loose;
}

export const PODS = '/api/v1/namespaces/default/pods';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

export interface ClusterScene {
  readonly clock: FakeClock;
  readonly revision: number;
  call(method: string, url: string, body?: unknown): Promise<SceneAnswer>;
  /** Like call, but fails the test if the request fails. */
  ok(method: string, url: string, body?: unknown): Promise<Loose>;
  settle(): Promise<void>;
  /** Advances the clock. Nodes that are alive renew their Leases every ten seconds. */
  advance(seconds: number): Promise<void>;
  /** Creates a node that is ready and renews its Lease until `die`. */
  node(name: string, options?: { labels?: Loose; allocatable?: Loose }): Promise<void>;
  die(name: string): void;
  revive(name: string): Promise<void>;
  pod(name: string, options?: Loose): Promise<Loose>;
  /** Sets a pod to running and ready, as its node agent would. */
  run(name: string): Promise<void>;
  /** `name@node` for each pod. */
  places(): Promise<string[]>;
  events(about: string): Promise<string[]>;
  /** Stops the controllers and starts new ones. */
  restart(): Promise<void>;
}

export async function startClusterScene(t: TestContext): Promise<ClusterScene> {
  const clock = new FakeClock();
  const store = await openMemoryStore();
  const registry = new Registry([...builtInResources, customResourceDefinitions]);
  const stopTracking = trackCustomKinds(store, registry, silentLog);
  const authorizer = rbacAuthorizer(store);
  const lifecycle = namespaceLifecycle(store);
  const handler = createApi({
    store,
    clock,
    log: silentLog,
    registry,
    authorizer,
    tokens: () => undefined,
    turns: new FairTurns(() => 0),
    metrics: createEngineMetrics(new MetricRegistry(), store),
    admission: admissionChain({
      mutating: [lifecycle, taintNewNodes, priorityAdmission(store), tolerateLostNodes],
      validating: [priorityClassValidation(store)],
      guards: [lifecycle],
    }),
    paths: async () => assert.fail('no paths here'),
    subresources: { 'pods/binding': podBinding, 'pods/eviction': podEviction(registry) },
    aggregation: noAggregation,
    audit: () => {},
  });
  const clientOf = (user: typeof ADMIN) => createClient(createInProcessTransport({ handler, user, userAgent: 'test' }));

  async function startControllers() {
    const stopping = new AbortController();
    const { signal } = stopping;
    const informers = new SharedInformers({ reader: clientOf(INFORMERS), clock, log: silentLog, signal });
    const all: EngineController[] = [schedulerController, nodeLifecycleController, disruptionController, crdController];
    const recorders: EventRecorder[] = [];
    const controllers = all.flatMap(({ account, start }) => {
      const client = clientOf(accountUser(account));
      const events = new EventRecorder({ writer: client, clock, log: silentLog, component: account, signal });
      recorders.push(events);
      return start({ client, informer: informers.of.bind(informers), registry, clock, log: silentLog, events, signal });
    });
    await informers.waitForSync();
    return {
      async idle() {
        for (const controller of controllers) await controller.idle();
        for (const recorder of recorders) await recorder.idle();
      },
      async stop() {
        stopping.abort();
        await Promise.all([...controllers.map(({ stopped }) => stopped), informers.stopped()]);
      },
    };
  }

  const call: ClusterScene['call'] = async (method, url, body) => {
    const [path = '', query = ''] = url.split('?', 2);
    const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body));
    const response = await handler({
      method,
      path,
      query: new URLSearchParams(query),
      user: ADMIN,
      accept: 'application/json',
      contentType: method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json',
      userAgent: 'test',
      body: async () => bytes,
      signal: new AbortController().signal,
    });
    assert.ok('body' in response);
    const pieces = [response.body].flat();
    return { status: response.status, body: JSON.parse(Buffer.concat(pieces).toString('utf8')) };
  };
  const ok: ClusterScene['ok'] = async (method, url, body) => {
    const answer = await call(method, url, body);
    assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    await ok('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  await ensureRbacDefaults(clientOf(ADMIN), silentLog);
  let running = await startControllers();
  t.after(async () => {
    await running.stop();
    authorizer.stop();
    stopTracking();
    await store.close();
  });

  const rest = async (): Promise<void> => {
    // More rounds than any test needs, so that controllers that revert each other's changes fail the test.
    for (let round = 0, quiet = 0; quiet < 3; round++) {
      assert.ok(round < 500, 'the controllers do not settle');
      const before = store.revision;
      await settle();
      await running.idle();
      quiet = store.revision === before ? quiet + 1 : 0;
    }
  };
  const alive = new Set<string>();
  const renew = async () => {
    for (const name of alive) {
      await ok('PATCH', `${LEASES}/${name}`, { spec: { renewTime: microTimestamp(clock.now()) } });
    }
  };
  const report = (name: string) => {
    const now = timestamp(clock.now());
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' };
    const conditions = [{ ...ready, lastHeartbeatTime: now, lastTransitionTime: now }];
    return ok('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
  };

  return {
    clock,
    get revision() {
      return store.revision;
    },
    call,
    ok,
    settle: rest,
    async advance(seconds) {
      for (let left = seconds; left > 0; left -= 10) {
        await clock.advance(Math.min(left, 10) * 1000);
        await renew();
        await rest();
      }
    },
    async node(name, { labels = {}, allocatable = {} } = {}) {
      await ok('POST', '/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
        status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...allocatable } },
      });
      await ok('POST', LEASES, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name },
        spec: { holderIdentity: name, renewTime: microTimestamp(clock.now()) },
      });
      await report(name);
      alive.add(name);
      await rest();
    },
    die: (name) => void alive.delete(name),
    async revive(name) {
      alive.add(name);
      await renew();
      await report(name);
      await rest();
    },
    async pod(name, { labels, ownerReferences, requests, ...spec } = {}) {
      const containers = [{ name: 'main', image: 'x', resources: { requests } }];
      const metadata = { name, labels, ownerReferences };
      const pod = await ok('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, ...spec } });
      await rest();
      return pod;
    },
    async run(name) {
      const now = timestamp(clock.now());
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: now }];
      await ok('PATCH', `${PODS}/${name}/status`, { status: { phase: 'Running', conditions } });
      await rest();
    },
    async places() {
      const { items } = await ok('GET', PODS);
      return items.map(({ metadata, spec }: Loose) => `${metadata.name}@${spec.nodeName ?? ''}`);
    },
    async events(about) {
      const { items } = await ok('GET', '/api/v1/namespaces/default/events');
      return items
        .filter(({ involvedObject }: Loose) => involvedObject.name === about)
        .sort((a: Loose, b: Loose) => a.metadata.resourceVersion - b.metadata.resourceVersion)
        .map(({ type, reason, message }: Loose) => `${type} ${reason} ${message}`);
    },
    async restart() {
      await running.stop();
      running = await startControllers();
      await rest();
    },
  };
}

/**
 * The engine with a selection of our controllers on a fake clock. The test plays the node agents: nodes stay alive
 * until the test stops their heartbeats, and launcher pods report what the test chooses.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { buildCrd, type CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { LOCAL_PROVISIONER, MACHINE_TYPE_LABEL_PREFIX, SCHEDULABLE_LABEL } from '#api/names.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { microTimestamp, timestamp } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { networkAttachmentDefinition } from '#operator/objects/definitions.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';
import { EventRecorder } from '#runtime/events.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { SharedInformers } from '#runtime/shared-informers.ts';
import { ADMIN, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

export const PODS = '/api/v1/namespaces/default/pods';
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
export const VOLUMES = '/api/v1/persistentvolumes';
export const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

const Q35_LABEL = `${MACHINE_TYPE_LABEL_PREFIX}q35`;

export interface VmiScene extends Pick<TestApi, 'ok' | 'call'> {
  readonly clock: FakeClock;
  readonly revision: number;
  settle(): Promise<void>;
  /** Advances the clock; nodes that are alive renew their Leases meanwhile. */
  advance(seconds: number): Promise<void>;
  /** Creates a node that can run q35. */
  addNode(name: string): Promise<void>;
  /** Stops the heartbeats of the node. */
  stopHeartbeat(name: string): void;
  addStorageClass(name: string, more?: Loose): Promise<void>;
  addClaim(name: string, spec: Loose): Promise<Loose>;
  /** Writes the status of a pod, as the agent does. */
  reportPod(pod: string, status: Loose): Promise<void>;
  /** Returns `Type Reason Message` of each Event, oldest first. */
  eventsOf(about: string): Promise<string[]>;
}

export async function startVmiScene(
  t: TestContext,
  controllers: readonly PlaneController[],
  kinds: readonly CustomKind[] = [],
): Promise<VmiScene> {
  const clock = new FakeClock();
  const api = await startTestApi({ clock });
  // Installed as by the operator: controllers watch volume snapshots and definitions of networks.
  const foreign = [...volumeSnapshotDefinitions, networkAttachmentDefinition].map(({ object }) => object);
  const definitions = [...kinds.map(buildCrd), ...foreign];
  for (const body of definitions) {
    await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body });
  }
  const planeControllers = await startPlaneControllers(api, clock, controllers);
  t.after(async () => {
    await planeControllers.stop();
    await api.stop();
  });
  const alive = new Set<string>();

  async function settleControllers(): Promise<void> {
    // Several quiet rounds, so that controllers that fight are detected.
    for (let round = 0, quiet = 0; quiet < 3; round++) {
      assert.ok(round < 300, 'the controllers do not settle');
      const before = api.store.revision;
      await settle();
      await api.settle();
      await planeControllers.idle();
      quiet = api.store.revision === before ? quiet + 1 : 0;
    }
    const overdue = await Promise.all(
      [...api.controllers, ...planeControllers.controllers].map(
        async (controller) => (await controller.findOverdue?.()) ?? [],
      ),
    );
    assert.deepEqual(overdue.flat(), [], 'each change that a decision depends on wakes its controller');
  }

  async function renewLeases(): Promise<void> {
    for (const name of alive) {
      await api.ok('PATCH', `${LEASES}/${name}`, { body: { spec: { renewTime: microTimestamp(clock.now()) } } });
    }
  }

  await planeControllers.ready();
  await settleControllers();
  return {
    clock,
    ok: api.ok,
    call: api.call,
    get revision() {
      return api.store.revision;
    },
    settle: settleControllers,
    async advance(seconds) {
      for (let left = seconds; left > 0; left -= 10) {
        await clock.advance(Math.min(left, 10) * 1000);
        await renewLeases();
        await settleControllers();
      }
    },
    async addNode(name) {
      const labels = { 'kubernetes.io/hostname': name, [SCHEDULABLE_LABEL]: 'true', [Q35_LABEL]: 'true' };
      const now = timestamp(clock.now());
      const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now };
      const status = { allocatable: { cpu: '4', memory: '8Gi', pods: '110' }, conditions: [ready] };
      const spec = { holderIdentity: name, renewTime: microTimestamp(clock.now()) };
      await api.ok('POST', '/api/v1/nodes', {
        body: { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status },
      });
      await api.ok('POST', LEASES, {
        body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec },
      });
      await api.ok('PATCH', `/api/v1/nodes/${name}/status`, { body: { status } });
      alive.add(name);
      await settleControllers();
    },
    stopHeartbeat: (name) => void alive.delete(name),
    async addStorageClass(name, more = {}) {
      const { metadata = {}, ...fields } = more;
      const body = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name, ...metadata },
        provisioner: LOCAL_PROVISIONER,
        ...fields,
      };
      await api.ok('POST', '/apis/storage.k8s.io/v1/storageclasses', { body });
      await settleControllers();
    },
    async addClaim(name, spec) {
      const fullSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec };
      const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec: fullSpec };
      const claim = await api.ok('POST', CLAIMS, { body });
      await settleControllers();
      return claim;
    },
    async reportPod(pod, status) {
      await api.ok('PATCH', `${PODS}/${pod}/status`, { body: { status } });
      await settleControllers();
    },
    async eventsOf(about) {
      const { items } = await api.ok('GET', '/api/v1/namespaces/default/events');
      return items
        .filter(({ involvedObject }: Loose) => involvedObject.name === about)
        .sort((a: Loose, b: Loose) => a.metadata.resourceVersion - b.metadata.resourceVersion)
        .map(({ type, reason, message }: Loose) => `${type} ${reason} ${message}`);
    },
  };
}

async function startPlaneControllers({ core }: TestApi, clock: FakeClock, wanted: readonly PlaneController[]) {
  const stopping = new AbortController();
  const { signal } = stopping;
  const client = createClient(createInProcessTransport({ handler: core.handler, user: ADMIN, userAgent: 'test' }));
  const informers = new SharedInformers({ reader: client, clock, log: silentLog, signal });
  const metrics = new MetricRegistry();
  const recorders: EventRecorder[] = [];
  const running = wanted.flatMap(({ eventSource, start }) => {
    const events = new EventRecorder({ writer: client, clock, log: silentLog, component: eventSource, signal });
    recorders.push(events);
    return start({ client, informer: (type) => informers.of(type), clock, log: silentLog, events, metrics, signal });
  });
  return {
    controllers: running,
    /**
     * Waits until the informers are synced. The definitions are served with a delay, so early informers retry after a
     * while.
     */
    async ready() {
      const synced = { is: false };
      const all = informers.waitForSync().then(() => (synced.is = true));
      for (let round = 0; !synced.is; round++) {
        assert.ok(round < 100, 'the informers do not sync: is each kind installed that a controller watches?');
        await settle();
        await clock.advance(1000);
      }
      await all;
    },
    async idle() {
      for (const controller of running) await controller.idle();
      for (const recorder of recorders) await recorder.idle();
    },
    async stop() {
      stopping.abort();
      await Promise.all([...running.map(({ stopped }) => stopped), informers.stopped()]);
    },
  };
}

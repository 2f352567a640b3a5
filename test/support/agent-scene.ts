/** A node agent with simulated guests on a test API, with the permissions of a node. The test plays the controllers. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { buildCrd } from '#api/custom-kinds/custom-kind.ts';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import type { ApiRequest } from '#engine/request/request.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { ProgramAccess } from '#node/pods/pod-access.ts';
import type { RunProgram } from '#node/pods/program.ts';
import type { Preparation, PreparedVolume, Volumes } from '#node/volumes/volumes-port.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

export const NODE = 'n1';
const STEP_SECONDS = 5;
const USER = { name: `system:node:${NODE}`, groups: ['system:nodes', 'system:authenticated'] };
export const PODS = '/api/v1/namespaces/default/pods';
export const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
export const VOLUMES = '/api/v1/persistentvolumes';
const SNAPSHOTS = 'snapshot.storage.k8s.io';
export const CONTENTS = `/apis/${SNAPSHOTS}/v1/volumesnapshotcontents`;

/** Volumes that are ready at once unless a test sets another preparation. All calls are recorded. */
export interface FakeVolumes extends Volumes {
  next: Preparation;
  /** The prepared volumes by name; a name without an entry gets a default medium. */
  readonly media: Map<string, PreparedVolume>;
  readonly calls: string[];
}

const aMedium = (name: string): PreparedVolume => ({
  source: { path: `/simulated/${name}`, format: 'raw' },
  readonly: false,
});

export function fakeVolumes(): FakeVolumes {
  const calls: string[] = [];
  const volumes: FakeVolumes = {
    next: { is: 'ready', volumes: new Map() },
    media: new Map(),
    calls,
    prepare: async ({ metadata }, _, { names }) => {
      calls.push(['prepare', metadata.name, ...(names ?? [])].join(' '));
      if (names === undefined || volumes.next.is !== 'ready') return volumes.next;
      return { is: 'ready', volumes: new Map(names.map((name) => [name, volumes.media.get(name) ?? aMedium(name)])) };
    },
    prepareState: async (_, claim) => {
      calls.push(`prepareState ${claim}`);
      return { is: 'ready', directory: `/simulated/${claim}/state` };
    },
    prepareIncoming: async ({ metadata, spec }, _, { moving, contents }) => {
      const [moved, copied] = [[...moving.keys()], [...contents.keys()]];
      calls.push(['prepareIncoming', metadata.name, ...moved, ...copied].join(' '));
      if (volumes.next.is !== 'ready') return volumes.next;
      const names = (spec.volumes ?? []).map(({ name }) => name);
      return {
        is: 'ready',
        volumes: new Map(names.map((name) => [name, volumes.media.get(name) ?? aMedium(`incoming/${name}`)])),
      };
    },
    removeLeftover: async ({ metadata }) => void calls.push(`removeLeftover ${metadata.name}`),
    releaseVolume: async (_, name) => void calls.push(`releaseVolume ${name}`),
    release: async () => void calls.push('release'),
    releaseUnwanted: async () => undefined,
    removeData: async ({ metadata }) => void calls.push(`removeData ${metadata.name}`),
    grow: async ({ metadata }) => {
      calls.push(`grow ${metadata.name}`);
      return 2 ** 30;
    },
    makeSnapshotFile: async ({ id }) => {
      calls.push(`makeSnapshotFile ${id}`);
      return `/simulated/snapshots/${id}`;
    },
    takeSnapshot: async ({ metadata }, { id }) => void calls.push(`takeSnapshot ${metadata.name} ${id}`),
    sealSnapshot: async ({ id }) => {
      calls.push(`sealSnapshot ${id}`);
      return 2 ** 30;
    },
    removeSnapshot: async ({ id }) => void calls.push(`removeSnapshot ${id}`),
    fill: async ({ metadata }) => void calls.push(`fill ${metadata.name}`),
  };
  return volumes;
}

export interface AgentScene {
  readonly api: TestApi;
  readonly clock: FakeClock;
  readonly volumes: FakeVolumes;
  readonly agent: () => RunningAgent;
  readonly hypervisor: () => FakeHypervisor;
  /**
   * Everything that the agent does to change something: requests (`PATCH /api/v1/...`) and device changes of a guest
   * (`plug nic-b`).
   */
  readonly writes: string[];
  /** Every domain whose devices were read, by any agent of the scene. */
  readonly learned: string[];
  /** Errors of the next readings, in order. */
  readonly learnErrors: Error[];
  settle(): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Cuts the agent off after this many further steps, until the next agent starts. */
  cutAfter(writes: number): void;
  /** The names of all started guests, by any agent of the scene. */
  readonly starts: string[];
  /** Stops the agent without notice; a new one finds its guests. */
  restart(): Promise<void>;
  /** Creates a VMI on this node and its launcher pod. */
  launch(name: string, spec?: Loose, podSpec?: Loose): Promise<{ vmi: Loose; pod: Loose; id: string }>;
  pod(name: string): Promise<Loose>;
  vmi(name: string): Promise<Loose>;
}

export interface SceneOptions {
  readonly runProgram?: RunProgram;
  readonly programAccess?: ProgramAccess;
  /** The directory of VMs that the host API created; without it, the host API is read-only. */
  readonly hostDir?: string;
}

export async function startAgentScene(t: TestContext, options: SceneOptions = {}): Promise<AgentScene> {
  const clock = new FakeClock();
  const api = await startTestApi({ clock });
  await installKinds(api);
  const volumes = fakeVolumes();
  const [learned, learnFaults]: [string[], Error[]] = [[], []];
  const { releaseVolume } = volumes;
  volumes.releaseVolume = async (id, name) => {
    recordStep(`releaseVolume ${name}`);
    await releaseVolume(id, name);
  };
  const writes: string[] = [];
  /** Records a step that changes something, or throws if the agent is cut off. */
  const recordStep = (name: string) => {
    if (writesLeft-- <= 0) {
      cut.resolve();
      throw new Error('the agent is dead');
    }
    writes.push(name);
  };
  const handler = (request: ApiRequest) => {
    if (request.method !== 'GET') recordStep(`${request.method} ${request.path}`);
    return api.core.handler(request);
  };
  let writesLeft = Infinity;
  let cut = Promise.withResolvers<void>();
  const starts: string[] = [];
  const createHypervisor = (host?: FakeHypervisor['host']): FakeHypervisor => {
    const fake = createFakeHypervisor({ clock, ...(host === undefined ? {} : { host }) });
    const create = fake.create.bind(fake);
    fake.create = async (definition, options) => {
      if (fake.get(definition.id) === undefined) starts.push(definition.name);
      await create(definition, options);
    };
    const [learn, plug, unplug] = [fake.learn.bind(fake), fake.plug.bind(fake), fake.unplug.bind(fake)];
    fake.learn = async (id) => {
      learned.push(id);
      const fault = learnFaults.shift();
      if (fault !== undefined) throw fault;
      return await learn(id);
    };
    fake.plug = async (id, device) => {
      recordStep(`plug ${device.id}`);
      await plug(id, device);
    };
    fake.unplug = async (id, device) => {
      recordStep(`unplug ${device}`);
      await unplug(id, device);
    };
    return fake;
  };
  const client = createClient(createInProcessTransport({ handler, user: USER, userAgent: 'agent' }));
  let hypervisor = createHypervisor();
  const start = () =>
    startNodeAgent({
      name: NODE,
      client,
      hypervisor,
      volumes,
      guest: undefined,
      endpoint: { address: '127.0.0.1', port: 10_250 },
      sandboxed: false,
      clock,
      log: silentLog,
      ...options,
    });
  let agent = await start();
  t.after(async () => {
    await agent.stop();
    await api.stop();
  });

  const scene: AgentScene = {
    api,
    clock,
    volumes,
    writes,
    learned,
    learnErrors: learnFaults,
    starts,
    cutAfter: (count) => void (writesLeft = count),
    agent: () => agent,
    hypervisor: () => hypervisor,
    async settle() {
      for (let round = 0, quiet = 0; quiet < 3; round++) {
        assert.ok(round < 200, 'the agent does not settle');
        const before = api.store.revision;
        await api.settle();
        // An agent that is cut off retries for ever, because its clock does not advance.
        await Promise.race([agent.idle(), cut.promise]);
        for (let turns = 0; turns < 10; turns++) await settle();
        quiet = api.store.revision === before ? quiet + 1 : 0;
      }
    },
    async advance(seconds) {
      // In steps, so that periodic writes complete before the next ones are due.
      for (let left = seconds; left > 0; left -= STEP_SECONDS) {
        await clock.advance(Math.min(left, STEP_SECONDS) * 1000);
        await scene.settle();
      }
    },
    async restart() {
      await agent.stop();
      writesLeft = Infinity;
      cut = Promise.withResolvers<void>();
      hypervisor = createHypervisor(hypervisor.host);
      agent = await start();
      await scene.settle();
    },
    async launch(name, spec = {}, podSpec = {}) {
      const vmi = await api.ok('POST', VMIS, { body: aVmi(name, spec) });
      const pod = await api.ok('POST', PODS, { body: aLauncher(vmi, podSpec) });
      await scene.settle();
      const status = { phase: 'Scheduled', nodeName: NODE, activePods: { [pod.metadata.uid]: NODE } };
      await api.ok('PATCH', `${VMIS}/${name}/status`, { body: { status } });
      await scene.settle();
      return { vmi, pod, id: vmi.metadata.uid };
    },
    pod: (name) => api.ok('GET', `${PODS}/${name}`),
    vmi: (name) => api.ok('GET', `${VMIS}/${name}`),
  };
  await scene.settle();
  return scene;
}

export function aVmi(name: string, spec: Loose = {}): Loose {
  const devices = { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:01' }] };
  const domain = { memory: { guest: '128Mi' }, firmware: { uuid: UUID }, machine: { type: 'q35' }, devices };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      labels: { 'kubevirt.io/nodeName': NODE },
      finalizers: ['kubevirt.io/foregroundDeleteVirtualMachine'],
    },
    spec: { domain, networks: [{ name: 'default', pod: {} }], terminationGracePeriodSeconds: 60, ...spec },
  };
}

const UUID = '2c38d57e-5f5c-4f0c-8a3a-7f2f0b0a1c11';

export function aLauncher(vmi: Loose, { name = `launcher-${vmi.metadata.name}`, ...spec }: Loose = {}): Loose {
  const { apiVersion, kind } = vmi;
  const owner = { apiVersion, kind, name: vmi.metadata.name, uid: vmi.metadata.uid, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': vmi.metadata.uid },
      annotations: { 'kubevirt.io/domain': vmi.metadata.name },
      ownerReferences: [owner],
    },
    spec: {
      nodeName: NODE,
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 75,
      containers: ['compute', 'guest-console-log'].map((container) => ({
        name: container,
        image: 'selfsame/virt-launcher',
      })),
      ...spec,
    },
  };
}

/** Creates our kinds and the permissions that the operator grants to nodes. */
async function installKinds(api: TestApi): Promise<void> {
  await api.settle();
  const definitions = [...customKinds.map(buildCrd), ...volumeSnapshotDefinitions.map(({ object }) => object)];
  for (const body of definitions) {
    await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body });
  }
  const RBAC = '/apis/rbac.authorization.k8s.io/v1';
  const read = ['get', 'list', 'watch'];
  const rules = [
    { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: read },
    { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['update'] },
    { apiGroups: ['identity.selfsame.io'], resources: ['virtualmachineidentities'], verbs: ['get'] },
    { apiGroups: [''], resources: ['persistentvolumes'], verbs: [...read, 'patch'] },
    { apiGroups: [''], resources: ['persistentvolumeclaims/status'], verbs: ['patch'] },
    { apiGroups: [SNAPSHOTS], resources: ['volumesnapshotcontents'], verbs: [...read, 'patch'] },
    { apiGroups: [SNAPSHOTS], resources: ['volumesnapshotcontents/status'], verbs: ['patch'] },
  ];
  const name = 'selfsame-node';
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  await api.ok('POST', `${RBAC}/clusterroles`, {
    body: { apiVersion, kind: 'ClusterRole', metadata: { name }, rules },
  });
  await api.ok('POST', `${RBAC}/clusterrolebindings`, {
    body: {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'Group', name: 'system:nodes' }],
    },
  });
  await api.settle();
}

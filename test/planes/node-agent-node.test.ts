/** The node agent through the whole core: its Node and Lease, pods that run our own program, the data of volumes. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { ProgramProcess } from '#node/pods/program.ts';
import { CLAIMS, NODE, PODS, VOLUMES, startAgentScene, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const NODE_URL = `/api/v1/nodes/${NODE}`;
const LEASE_URL = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`;

const readyStatus = (node: Loose): string => node.status.conditions.find(({ type }: Loose) => type === 'Ready').status;

describe('a node', () => {
  it('reports its capabilities', async (t) => {
    const { api } = await startAgentScene(t);
    const { metadata, status } = await api.ok('GET', NODE_URL);
    assert.equal(metadata.labels['machine-type.node.kubevirt.io/q35'], 'true');
    assert.equal(metadata.labels['selfsame.io/hypervisor'], 'fake');
    assert.equal(readyStatus({ status }), 'True');
    assert.equal(status.daemonEndpoints.kubeletEndpoint.Port, 10_250);
    assert.deepEqual(status.addresses[0], { type: 'InternalIP', address: '127.0.0.1' });
    assert.match(status.nodeInfo.containerRuntimeVersion, /^selfsame:\/\//);
  });

  it('renews its Lease, and writes its Node only for a heartbeat', async (t) => {
    const scene = await startAgentScene(t);
    const before = await scene.api.ok('GET', LEASE_URL);
    scene.writes.length = 0;
    await scene.advance(60);
    const after = await scene.api.ok('GET', LEASE_URL);
    assert.ok(Date.parse(after.spec.renewTime) - Date.parse(before.spec.renewTime) >= 50_000);
    assert.equal(after.spec.leaseDurationSeconds, 40);
    assert.deepEqual([...new Set(scene.writes)], [`PUT ${LEASE_URL}`]);
    await scene.advance(300);
    assert.equal(scene.writes.filter((write) => write.includes('/nodes/')).length, 1);
  });

  it('reports at once that it is alive after it was considered lost', async (t) => {
    const scene = await startAgentScene(t);
    const lost = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }];
    await scene.api.ok('PATCH', `${NODE_URL}/status`, { body: { status: { conditions: lost } } });
    await scene.settle();
    assert.equal(readyStatus(await scene.api.ok('GET', NODE_URL)), 'True');
  });

  it('is created again if its Node or Lease was deleted', async (t) => {
    const scene = await startAgentScene(t);
    await scene.api.ok('DELETE', NODE_URL);
    await scene.api.call('DELETE', LEASE_URL);
    await scene.settle();
    await scene.advance(30);
    assert.equal(readyStatus(await scene.api.ok('GET', NODE_URL)), 'True');
    assert.equal((await scene.api.ok('GET', LEASE_URL)).spec.holderIdentity, NODE);
  });

  it('reports its addresses, and drops obsolete ones', async (t) => {
    const scene = await startAgentScene(t);
    const { status } = await scene.api.ok('GET', NODE_URL);
    assert.deepEqual(status.addresses, [{ type: 'InternalIP', address: '127.0.0.1' }]);
    const addresses = [{ type: 'Hostname', address: 'of-an-older-agent' }];
    await scene.api.ok('PATCH', `${NODE_URL}/status`, { body: { status: { addresses } } });
    await scene.settle();
    assert.deepEqual((await scene.api.ok('GET', NODE_URL)).status.addresses, status.addresses);
  });

  it('keeps the labels of other writers, and restores its own', async (t) => {
    const scene = await startAgentScene(t);
    const labels = { rack: '7', 'kubevirt.io/schedulable': 'false' };
    await scene.api.ok('PATCH', NODE_URL, { body: { metadata: { labels } } });
    await scene.settle();
    const { metadata } = await scene.api.ok('GET', NODE_URL);
    assert.equal(metadata.labels['rack'], '7');
    assert.equal(metadata.labels['kubevirt.io/schedulable'], 'true');
  });
});

interface FakeProgram extends ProgramProcess {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly killed: string[];
  say(text: string): void;
  exit(code: number): void;
}

async function startProgramScene(t: TestContext): Promise<{ scene: AgentScene; started: FakeProgram[] }> {
  const started: FakeProgram[] = [];
  const scene = await startAgentScene(t, {
    runProgram(args, env) {
      const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
      const listeners: ((chunk: Buffer) => void)[] = [];
      const killed: string[] = [];
      const program: FakeProgram = {
        args,
        env,
        killed,
        exited,
        exit,
        say: (text) => listeners.forEach((listener) => listener(Buffer.from(text))),
        onOutput: (listener) => void listeners.push(listener),
        kill: (signal) => void killed.push(signal),
      };
      started.push(program);
      return program;
    },
  });
  return { scene, started };
}

function aProgramPod(name: string, spec: Loose = {}, container: Loose = {}): Loose {
  const containers = [{ name: 'main', image: 'selfsame/selfsame:1', args: ['version'], ...container }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { nodeName: NODE, restartPolicy: 'Never', automountServiceAccountToken: false, containers, ...spec },
  };
}

async function createPod(scene: AgentScene, pod: Loose): Promise<void> {
  await scene.api.ok('POST', PODS, { body: pod });
  await scene.settle();
}

describe('a pod with our own program', () => {
  it('runs with its arguments and variables, and ends with the process', async (t) => {
    const { scene, started } = await startProgramScene(t);
    const env = [{ name: 'SELFSAME_X', value: '1' }];
    await createPod(scene, aProgramPod('job', {}, { args: ['version', '--short'], env }));
    assert.equal((await scene.pod('job')).status.phase, 'Running');
    assert.deepEqual([started[0]!.args, started[0]!.env], [['version', '--short'], { SELFSAME_X: '1' }]);
    started[0]!.say('1.0\n');
    started[0]!.exit(0);
    await scene.settle();
    const { phase, containerStatuses } = (await scene.pod('job')).status;
    assert.equal(phase, 'Succeeded');
    assert.equal(containerStatuses[0].state.terminated.reason, 'Completed');
    assert.equal((await scene.agent().logs('default', 'job', 'main')!.read()).toString(), '1.0\n');
    assert.equal(scene.agent().logs('default', 'job', 'other'), undefined);
  });

  it('is restarted after a failure if its restart policy says so', async (t) => {
    const { scene, started } = await startProgramScene(t);
    await createPod(scene, aProgramPod('job', { restartPolicy: 'OnFailure' }));
    started[0]!.exit(2);
    await scene.settle();
    assert.equal(started.length, 2, 'the first time at once');
    started[1]!.exit(3);
    await scene.settle();
    const [status] = (await scene.pod('job')).status.containerStatuses;
    assert.equal(status.state.waiting.reason, 'CrashLoopBackOff');
    assert.equal(status.lastState.terminated.exitCode, 3);
    await scene.advance(10);
    assert.equal(started.length, 3);
    assert.equal((await scene.pod('job')).status.containerStatuses[0].restartCount, 2);
  });

  it('is asked to end when it is deleted, and killed if it does not', async (t) => {
    const { scene, started } = await startProgramScene(t);
    await createPod(scene, aProgramPod('job', { terminationGracePeriodSeconds: 20 }));
    await scene.api.ok('DELETE', `${PODS}/job`);
    await scene.settle();
    assert.deepEqual(started[0]!.killed, ['SIGTERM']);
    await scene.advance(21);
    assert.equal(started[0]!.killed.at(-1), 'SIGKILL');
    started[0]!.exit(137);
    await scene.settle();
    assert.equal((await scene.api.call('GET', `${PODS}/job`)).status, 404);
  });

  it('can be followed while it runs', async (t) => {
    const { scene, started } = await startProgramScene(t);
    await createPod(scene, aProgramPod('job'));
    started[0]!.say('one\n');
    const followed = scene.agent().logs('default', 'job', 'main')!.follow(new AbortController().signal);
    const read: string[] = [];
    const reading = (async () => {
      for await (const chunk of followed) {
        read.push(chunk.toString());
        if (read.length === 1) started[0]!.say('two\n');
        if (read.length === 2) started[0]!.exit(0);
      }
    })();
    await reading;
    assert.deepEqual(read, ['one\n', 'two\n']);
  });

  it('of another image fails at once with the reason', async (t) => {
    const { scene, started } = await startProgramScene(t);
    await createPod(scene, aProgramPod('web', {}, { image: 'nginx', args: undefined }));
    const { phase, reason, message } = (await scene.pod('web')).status;
    assert.deepEqual([phase, reason], ['Failed', 'ImageUnsupported']);
    assert.match(message, /"nginx"/);
    assert.equal(started.length, 0);
  });
});

const PV = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: 'pv',
    finalizers: ['selfsame.io/volume-data'],
    annotations: { 'selfsame.io/volume-node': NODE, 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local' },
  },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Delete',
    storageClassName: 'local',
    csi: { driver: 'local.selfsame.io', volumeHandle: 'pv' },
    claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' },
  },
};

describe('a volume of this node', () => {
  it('is deleted with its data', async (t) => {
    const scene = await startAgentScene(t);
    const { claimRef: _, ...spec } = PV.spec;
    await scene.api.ok('POST', VOLUMES, { body: { ...PV, spec } });
    await scene.settle();
    assert.deepEqual(scene.volumes.calls, []);
    await scene.api.ok('DELETE', `${VOLUMES}/pv`);
    await scene.settle();
    assert.deepEqual(scene.volumes.calls, ['removeData pv']);
    assert.equal((await scene.api.call('GET', `${VOLUMES}/pv`)).status, 404);
  });

  it('grows under a running guest, and its claim reports that', async (t) => {
    const scene = await startAgentScene(t);
    await scene.api.ok('POST', VOLUMES, { body: PV });
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      volumeName: 'pv',
      resources: { requests: { storage: '1Gi' } },
    };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' }, spec };
    await scene.api.ok('POST', CLAIMS, { body: claim });
    const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
    await scene.api.ok('PATCH', `${CLAIMS}/data/status`, { body: { status } });
    const path = '/disk.img';
    scene.volumes.next = {
      is: 'ready',
      volumes: new Map([['root', { source: { path, format: 'raw' }, readonly: false }]]),
    };
    const resized: string[] = [];
    const hypervisor = scene.hypervisor();
    const resize = hypervisor.resizeDisk.bind(hypervisor);
    hypervisor.resizeDisk = async (id, disk, bytes) => {
      resized.push(`${disk} ${bytes}`);
      await resize(id, disk, bytes);
    };
    const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];
    const devices = { disks: [{ name: 'root', disk: { bus: 'virtio' } }] };
    const domain = { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices };
    await scene.launch('db', { domain, volumes }, { volumes });
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');

    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: { spec: { capacity: { storage: '2Gi' } } } });
    await scene.settle();
    assert.deepEqual(resized, [`disk-root ${2 ** 30}`]);
    assert.equal((await scene.api.ok('GET', `${CLAIMS}/data`)).status.capacity.storage, '2Gi');
  });

  it('that has grown before the agent sees its guest is reported in its claim, too', async (t) => {
    const scene = await startAgentScene(t);
    await scene.api.ok('POST', VOLUMES, { body: PV });
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      volumeName: 'pv',
      resources: { requests: { storage: '1Gi' } },
    };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' }, spec };
    await scene.api.ok('POST', CLAIMS, { body: claim });
    const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
    await scene.api.ok('PATCH', `${CLAIMS}/data/status`, { body: { status } });
    const path = '/disk.img';
    scene.volumes.next = {
      is: 'ready',
      volumes: new Map([['root', { source: { path, format: 'raw' }, readonly: false }]]),
    };
    const resized: string[] = [];
    const hypervisor = scene.hypervisor();
    const resize = hypervisor.resizeDisk.bind(hypervisor);
    hypervisor.resizeDisk = async (id, disk, bytes) => {
      resized.push(`${disk} ${bytes}`);
      await resize(id, disk, bytes);
    };
    const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];
    const devices = { disks: [{ name: 'root', disk: { bus: 'virtio' } }] };
    const domain = { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices };
    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: { spec: { capacity: { storage: '2Gi' } } } });
    await scene.settle();
    await scene.launch('db', { domain, volumes }, { volumes });
    assert.equal((await scene.pod('launcher-db')).status.phase, 'Running');

    await scene.advance(6);
    assert.deepEqual(resized, [`disk-root ${2 ** 30}`]);
    assert.equal((await scene.api.ok('GET', `${CLAIMS}/data`)).status.capacity.storage, '2Gi');
  });
});

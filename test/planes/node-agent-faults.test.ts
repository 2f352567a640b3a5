/**
 * The node agent through the whole core when something below it fails: hypervisors that hang, volumes that cannot be
 * released.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { CLAIMS, PODS, VOLUMES, aLauncher, startAgentScene, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const forceDelete = ({ api }: AgentScene, pod: string) =>
  api.ok('DELETE', `${PODS}/${pod}`, { body: { gracePeriodSeconds: 0 } });

/** Creates a pod in another namespace with the labels of a guest that is not its own. */
async function createForgedPod({ api }: AgentScene, vmi: Loose, spec: Loose = {}): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } };
  await api.ok('POST', '/api/v1/namespaces', { body: namespace });
  const pod = aLauncher(vmi, { name: 'forged', ...spec });
  await api.ok('POST', '/api/v1/namespaces/other/pods', { body: pod });
}

describe('a guest that must stop', () => {
  it('is powered off in time, also if it is paused and cannot be resumed', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db', { startStrategy: 'Paused' });
    scene.hypervisor().resume = async () => {
      throw new HypervisorError('QEMU did not answer');
    };
    await scene.api.ok('DELETE', `${PODS}/launcher-db`);
    await scene.settle();
    await scene.advance(50);
    assert.equal(scene.hypervisor().get(id)?.current.state, 'paused');
    await scene.advance(30);
    assert.equal(scene.hypervisor().get(id), undefined);
  });
});

describe('a change of the system clock', () => {
  for (const [how, leapMs] of [
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ] as const) {
    it(`${how} gives a guest neither more nor less time to shut down`, async (t) => {
      const scene = await startAgentScene(t);
      const { id } = await scene.launch('db');
      scene.hypervisor().guest(id).ignorePowerButton();
      await scene.api.ok('DELETE', `${PODS}/launcher-db`);
      await scene.settle();
      scene.clock.setWallClockBy(leapMs);
      await scene.advance(55);
      assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
      await scene.advance(10);
      assert.equal(scene.hypervisor().get(id), undefined);
    });
  }

  it('backwards does not delay the retry of a start', async (t) => {
    const scene = await startAgentScene(t);
    scene.hypervisor().failNextCreate(new HypervisorError('no memory left'));
    const { id } = await scene.launch('db');
    assert.equal(scene.hypervisor().get(id), undefined);
    scene.clock.setWallClockBy(-3_600_000);
    await scene.advance(15);
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  });
});

describe('resources of a guest', () => {
  it('are released later if that failed, also if the pod is gone', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const { release } = scene.volumes;
    scene.volumes.release = async () => {
      scene.volumes.release = release;
      throw new Error('losetup: device is busy');
    };
    await forceDelete(scene, 'launcher-db');
    await scene.settle();
    await scene.advance(5);
    assert.equal(scene.volumes.calls.at(-1), 'release');
    assert.equal(scene.hypervisor().get(id), undefined);
  });

  it('are released if an API error interrupted the start and the pod is gone before the retry', async (t) => {
    const scene = await startAgentScene(t);
    scene.hypervisor().create = async () => {
      throw new Error('the API is away');
    };
    await scene.launch('db');
    assert.equal(scene.volumes.calls.includes('release'), false);
    await forceDelete(scene, 'launcher-db');
    await scene.settle();
    await scene.advance(15);
    assert.equal(scene.volumes.calls.at(-1), 'release');
  });

  it('are released at the start of an agent if neither a guest nor a pod uses them', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    await scene.agent().stop();
    const wanted: boolean[] = [];
    scene.volumes.releaseUnwanted = async (isWanted) => void wanted.push(isWanted(id), isWanted('gone'));
    await scene.restart();
    assert.deepEqual(wanted, [true, false]);
  });

  it('do not prevent the start of an agent if they cannot be released', async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    scene.volumes.releaseUnwanted = async () => {
      throw new Error('losetup: device is busy');
    };
    await scene.restart();
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  });
});

describe('the logs of a launcher pod', () => {
  it("contain the hypervisor's output in the container that runs it, to the end if they are followed", async (t) => {
    const scene = await startAgentScene(t);
    const { id } = await scene.launch('db');
    const log = scene.agent().logs('default', 'launcher-db', 'compute')!;
    assert.match((await log.read()).toString(), /state: running/);
    const chunks: string[] = [];
    const followed = (async () => {
      for await (const chunk of log.follow(new AbortController().signal)) chunks.push(chunk.toString());
    })();
    await scene.settle();
    scene.hypervisor().guest(id).shutDown();
    await followed;
    assert.equal(chunks.length, 2);
    assert.match(chunks[1]!, /state: ended/);
  });

  it('end for a reader that disconnects', async (t) => {
    const scene = await startAgentScene(t);
    await scene.launch('db');
    const leaving = new AbortController();
    const reader = scene.agent().logs('default', 'launcher-db', 'compute')!.follow(leaving.signal);
    const chunks = reader[Symbol.asyncIterator]();
    await chunks.next();
    const next = chunks.next();
    leaving.abort();
    assert.equal((await next).done, true);
  });

  it('survive a console that breaks while its reader is still reading the beginning', async (t) => {
    const scene = await startAgentScene(t);
    await scene.launch('db');
    const hypervisor = scene.hypervisor();
    const open = hypervisor.openConsole.bind(hypervisor);
    const opened: { destroy(error: Error): void }[] = [];
    hypervisor.openConsole = async (id) => {
      const console = await open(id);
      opened.push(console);
      return console;
    };
    const log = scene.agent().logs('default', 'launcher-db', 'guest-console-log')!;
    const chunks = log.follow(new AbortController().signal)[Symbol.asyncIterator]();
    await chunks.next();
    opened[0]!.destroy(new HypervisorError('too much was left unread'));
    await scene.settle();
    await assert.rejects(chunks.next(), /too much was left unread/);
  });

  it('contain nothing of a guest in another namespace, whatever the labels of the pod say', async (t) => {
    const scene = await startAgentScene(t);
    const { vmi } = await scene.launch('db');
    await createForgedPod(scene, vmi);
    await scene.settle();
    for (const container of ['compute', 'guest-console-log']) {
      const own = scene.agent().logs('default', 'launcher-db', container);
      const forged = scene.agent().logs('other', 'forged', container);
      assert.notEqual((await own?.read())?.length, 0);
      assert.equal((await forged?.read())?.length ?? 0, 0);
    }
  });
});

const devices = { disks: [{ name: 'root', disk: { bus: 'virtio' } }] };
const onClaim = {
  domain: { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices },
  volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }],
};
const ready = {
  is: 'ready' as const,
  volumes: new Map([['root', { source: { path: '/disk.img', format: 'raw' as const }, readonly: false }]]),
};

/** Creates a claim of 1Gi in a namespace, on a volume of 2Gi. */
async function createGrownClaim({ api }: AgentScene, namespace: string): Promise<string> {
  const claims = CLAIMS.replace('/default/', `/${namespace}/`);
  const [accessModes, storageClassName] = [['ReadWriteOnce'], 'local'];
  const resources = { requests: { storage: '1Gi' } };
  const claim = await api.ok('POST', claims, {
    body: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data' },
      spec: { accessModes, storageClassName, volumeName: 'pv', resources },
    },
  });
  const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
  await api.ok('PATCH', `${claims}/data/status`, { body: { status } });
  const claimRef = { namespace, name: 'data', uid: claim.metadata.uid };
  const csi = { driver: 'local.selfsame.io', volumeHandle: 'pv' };
  await api.ok('POST', VOLUMES, {
    body: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv' },
      spec: { capacity: { storage: '2Gi' }, accessModes, storageClassName, claimRef, csi },
    },
  });
  return `${claims}/data`;
}

describe('a claim that grows', () => {
  it('does not grow the disk of a guest in another namespace', async (t) => {
    const scene = await startAgentScene(t);
    scene.volumes.next = ready;
    const { volumes } = onClaim;
    const { vmi } = await scene.launch('db', onClaim, { volumes });
    const resized: string[] = [];
    scene.hypervisor().resizeDisk = async (_id, name) => void resized.push(name);
    await createForgedPod(scene, vmi, { volumes, containers: [{ name: 'compute', image: 'selfsame/virt-launcher' }] });
    await createGrownClaim(scene, 'other');
    await scene.settle();
    assert.deepEqual(resized, []);
  });

  it('while its guest starts is reported once the guest runs', async (t) => {
    const scene = await startAgentScene(t);
    scene.volumes.next = { is: 'waiting', reason: 'FailedMount', message: 'not yet' };
    await scene.launch('db', onClaim, { volumes: onClaim.volumes });
    const claim = await createGrownClaim(scene, 'default');
    await scene.settle();
    assert.equal((await scene.api.ok('GET', claim)).status.capacity.storage, '1Gi');
    scene.volumes.next = ready;
    await scene.advance(20);
    assert.equal((await scene.api.ok('GET', claim)).status.capacity.storage, '2Gi');
  });
});

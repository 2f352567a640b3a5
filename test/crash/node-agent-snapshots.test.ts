/** Snapshots of volumes and volumes from snapshots by the node agent, with the API server in process. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle } from '#lib/testing/fake-clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';
import { CONTENTS, NODE, PODS, startAgentScene, VOLUMES, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const READY = { readyToUse: true, creationTime: 1, restoreSize: 1 };
const OURS = { 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local', 'selfsame.io/volume-node': NODE };
const DISKS = ['root', 'data'];

async function addVolume({ api }: AgentScene, name: string, { metadata = {}, attributes = {}, claim }: Loose = {}) {
  const { annotations, ...meta } = metadata;
  const body = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { ...OURS, ...annotations }, ...meta },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace: 'default', name: `claim-${name}`, uid: `uid-${name}`, ...claim },
      csi: { driver: 'local.selfsame.io', volumeHandle: name, volumeAttributes: { scope: 'node', ...attributes } },
    },
  };
  return await api.ok('POST', VOLUMES, { body });
}

async function snapshot(scene: AgentScene, volume: string, annotations: Loose = {}, spec: Loose = {}): Promise<string> {
  const name = await addContent(scene, volume, annotations, spec);
  await scene.settle();
  return name;
}

async function addContent({ api }: AgentScene, volume: string, annotations: Loose, spec: Loose): Promise<string> {
  const name = `snap-${volume}`;
  const body = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: {
      name,
      annotations: { 'selfsame.io/snapshot-node': NODE, ...annotations },
      finalizers: ['selfsame.io/snapshot-data'],
    },
    spec: {
      deletionPolicy: 'Delete',
      driver: 'local.selfsame.io',
      source: { volumeHandle: volume },
      volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'u' },
      ...spec,
    },
  };
  await api.ok('POST', CONTENTS, { body });
  return name;
}

const statusOf = async ({ api }: AgentScene, name: string): Promise<Loose> =>
  (await api.ok('GET', `${CONTENTS}/${name}`)).status;

async function isGone({ api }: AgentScene, url: string): Promise<boolean> {
  return (await api.call('GET', url)).status === 404;
}

/** Returns the calls about snapshots that the volumes got. */
const snapshotCalls = ({ volumes }: AgentScene) => volumes.calls.filter((call) => /napshot|fill/.test(call));

/** Starts a guest with two disks on claims. */
async function launch(scene: AgentScene): Promise<string> {
  const volumes = DISKS.map((name) => ({ name, persistentVolumeClaim: { claimName: `claim-${name}` } }));
  scene.volumes.next = {
    is: 'ready',
    volumes: new Map(
      DISKS.map((name) => [name, { source: { path: `/simulated/${name}`, format: 'raw' }, readonly: false }]),
    ),
  };
  for (const name of DISKS) await addVolume(scene, name);
  const devices = { disks: DISKS.map((name) => ({ name, disk: { bus: 'virtio' } })), interfaces: [] };
  const domain = {
    memory: { guest: '128Mi' },
    firmware: { uuid: '2c38d57e-5f5c-4f0c-8a3a-7f2f0b0a1c11' },
    machine: { type: 'q35' },
    devices,
  };
  const { id } = await scene.launch('db', { domain, networks: [], volumes }, { volumes });
  assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  return id;
}

const online = (id: string) => ({
  'selfsame.io/snapshot-instance': id,
  'selfsame.io/snapshot-set': 'set-1',
  'selfsame.io/snapshot-set-size': '2',
});

describe('a volume that no guest uses', () => {
  it('is copied, reported and released', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'pv');
    const name = await snapshot(scene, 'pv');
    const { creationTime, ...status } = await statusOf(scene, name);
    const handle = `node/${NODE}/${name}`;
    assert.deepEqual(status, { readyToUse: true, restoreSize: 2 ** 30, snapshotHandle: handle });
    assert.ok(Math.abs(creationTime / 1e6 - scene.clock.now()) < 60_000);
    assert.deepEqual(snapshotCalls(scene), [`takeSnapshot pv ${name}`, `sealSnapshot ${name}`]);
    const before = scene.writes.length;
    await scene.advance(30);
    assert.deepEqual(
      scene.writes.slice(before).filter((write) => write.includes(name)),
      [],
    );

    await scene.api.ok('DELETE', `${CONTENTS}/${name}`);
    await scene.settle();
    assert.ok(await isGone(scene, `${CONTENTS}/${name}`));
    assert.equal(snapshotCalls(scene).at(-1), `removeSnapshot ${name}`);
  });

  it('is tried again after an error, and success clears the error', async (t) => {
    const scene = await startAgentScene(t);
    const { takeSnapshot } = scene.volumes;
    scene.volumes.takeSnapshot = () => Promise.reject(new Error('no space left'));
    await addVolume(scene, 'pv');
    const name = await snapshot(scene, 'pv');
    assert.equal((await statusOf(scene, name)).error.message, 'no space left');
    scene.volumes.takeSnapshot = takeSnapshot;
    await scene.advance(60);
    const { readyToUse, error } = await statusOf(scene, name);
    assert.deepEqual([readyToUse, error], [true, undefined]);
  });

  it('is not copied while a guest uses it', async (t) => {
    const scene = await startAgentScene(t);
    await launch(scene);
    const name = await snapshot(scene, 'root');
    assert.match((await statusOf(scene, name)).error.message, /in use by pod "launcher-db"/);
    await scene.api.ok('DELETE', `${PODS}/launcher-db`, { body: { gracePeriodSeconds: 0 } });
    await scene.advance(60);
    assert.equal((await statusOf(scene, name)).readyToUse, true);
  });

  it('is not copied while a guest uses it whose pod is already deleted', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    const { destroy } = scene.hypervisor();
    scene.hypervisor().destroy = () => Promise.reject(new HypervisorError('not yet'));
    await scene.api.ok('DELETE', `${PODS}/launcher-db`, { body: { gracePeriodSeconds: 0 } });
    await scene.settle();
    const name = await snapshot(scene, 'root');
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
    assert.match((await statusOf(scene, name)).error.message, /in use by VirtualMachineInstance "db"/);
    scene.hypervisor().destroy = destroy;
    await scene.advance(120);
    assert.equal((await statusOf(scene, name)).readyToUse, true);
  });

  it('is not created again, empty, while it is being deleted', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'pv', { metadata: { finalizers: ['example.com/a'] } });
    await scene.api.ok('DELETE', `${VOLUMES}/pv`);
    const name = await snapshot(scene, 'pv');
    assert.match((await statusOf(scene, name)).error.message, /"pv" is being deleted/);
    assert.deepEqual(snapshotCalls(scene), []);
  });

  it('is copied once although the result cannot be written for a while', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'pv');
    scene.cutAfter(0);
    const name = await snapshot(scene, 'pv');
    await scene.advance(30);
    assert.equal(await statusOf(scene, name), undefined);
    scene.cutAfter(Infinity);
    await scene.advance(30);
    assert.equal((await statusOf(scene, name)).readyToUse, true);
    assert.deepEqual(snapshotCalls(scene), [`takeSnapshot pv ${name}`, `sealSnapshot ${name}`]);
  });

  it('is not reported as failed after it was reported as ready', async (t) => {
    const scene = await startAgentScene(t);
    scene.volumes.takeSnapshot = async (_, { id }) => {
      // As if the agent's own write was stored, but its answer was lost.
      await scene.api.ok('PATCH', `${CONTENTS}/${id}/status`, { body: { status: READY } });
      throw new Error('no space left');
    };
    await addVolume(scene, 'pv');
    const name = await snapshot(scene, 'pv');
    await scene.advance(30);
    assert.deepEqual(await statusOf(scene, name), READY);
  });

  it('is deleted without waiting for other copies', async (t) => {
    const scene = await startAgentScene(t);
    for (const name of ['pv', 'long-1', 'long-2']) await addVolume(scene, name);
    const name = await snapshot(scene, 'pv');
    const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    scene.volumes.takeSnapshot = async ({ metadata }, _, { signal }) => {
      begun[metadata.name === 'long-1' ? 0 : 1]?.resolve();
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      signal?.throwIfAborted();
    };
    const long = [await addContent(scene, 'long-1', {}, {}), await addContent(scene, 'long-2', {}, {})];
    await Promise.all(begun.map(({ promise }) => promise));

    await scene.api.ok('DELETE', `${CONTENTS}/${name}`);
    for (let turns = 0; turns < 500 && !(await isGone(scene, `${CONTENTS}/${name}`)); turns++) await settle();
    assert.ok(await isGone(scene, `${CONTENTS}/${name}`));

    for (const one of long) await scene.api.ok('DELETE', `${CONTENTS}/${one}`);
    await scene.settle();
    for (const one of long) assert.ok(await isGone(scene, `${CONTENTS}/${one}`));
  });

  it('of another node or another driver is ignored', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'pv');
    await addVolume(scene, 'pv2');
    const theirs = await snapshot(scene, 'pv', { 'selfsame.io/snapshot-node': 'n2' });
    const foreign = await snapshot(scene, 'pv2', {}, { driver: 'csi.example.com' });
    for (const name of [theirs, foreign]) await scene.api.ok('DELETE', `${CONTENTS}/${name}`);
    await scene.settle();
    for (const name of [theirs, foreign]) assert.equal(await isGone(scene, `${CONTENTS}/${name}`), false);
    assert.deepEqual(snapshotCalls(scene), []);
  });
});

describe('disks that a guest has open', () => {
  it('are copied at the same time, when the whole set is known', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    const moments: Loose[] = [];
    scene.hypervisor().host.onCopy = (copies) => moments.push(copies.map(({ source }) => source).sort());
    const first = await snapshot(scene, 'root', online(id));
    assert.equal(await statusOf(scene, first), undefined);
    scene.hypervisor().host.holdCopies = true;
    const second = await snapshot(scene, 'data', online(id));

    assert.deepEqual(moments, [['/simulated/data', '/simulated/root']]);
    const [one, two] = [await statusOf(scene, first), await statusOf(scene, second)];
    assert.equal(one.creationTime, two.creationTime);
    assert.deepEqual([one.readyToUse, one.snapshotHandle], [false, `node/${NODE}/${first}`]);
    await scene.advance(20);
    assert.equal((await statusOf(scene, first)).readyToUse, false);

    scene.hypervisor().host.finishCopies();
    await scene.settle();
    for (const name of [first, second]) {
      const status = await statusOf(scene, name);
      assert.deepEqual([status.readyToUse, status.creationTime], [true, one.creationTime]);
    }
    assert.equal(moments.length, 1);
    assert.equal(await scene.hypervisor().copyState(id, first), undefined, 'nothing is left in the hypervisor');
  });

  it('all fail with the first copy that fails, and nothing is left', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    scene.hypervisor().host.holdCopies = true;
    const names = [await snapshot(scene, 'root', online(id)), await snapshot(scene, 'data', online(id))];
    scene.hypervisor().guest(id).crash('QEMU exited with code 1');
    await scene.settle();
    for (const name of names) {
      assert.match((await statusOf(scene, name)).error.message, /the guest ended/);
      assert.ok(snapshotCalls(scene).includes(`removeSnapshot ${name}`));
    }
    const before = snapshotCalls(scene).filter((call) => call.startsWith('makeSnapshotFile')).length;
    await scene.advance(60);
    assert.equal(
      snapshotCalls(scene).filter((call) => call.startsWith('makeSnapshotFile')).length,
      before,
      'it is not tried again',
    );
  });

  it('of a guest that has ended cannot be copied', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'root');
    const name = await snapshot(scene, 'root', { ...online('nobody'), 'selfsame.io/snapshot-set-size': '1' });
    assert.equal((await statusOf(scene, name)).error.message, 'the guest ended before its disks were copied');
  });

  it('are not mixed with those of a set of the same name in another namespace', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    await addVolume(scene, 'theirs', { claim: { namespace: 'other' } });
    const first = await snapshot(scene, 'root', online(id));
    const ref = { volumeSnapshotRef: { namespace: 'other', name: 'snap', uid: 'u' } };
    const foreign = await snapshot(scene, 'theirs', { ...online(id), 'selfsame.io/snapshot-set-size': '1' }, ref);
    assert.equal((await statusOf(scene, foreign)).error.message, 'the guest has no disk on this volume');
    const second = await snapshot(scene, 'data', online(id));
    for (const name of [first, second]) assert.equal((await statusOf(scene, name)).readyToUse, true);
  });

  it('fail at once if the hypervisor reports a permanent error', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    scene.hypervisor().startCopies = () => Promise.reject(new HypervisorError('no room', { permanent: true }));
    const names = [await snapshot(scene, 'root', online(id)), await snapshot(scene, 'data', online(id))];
    for (const name of names) assert.equal((await statusOf(scene, name)).error.message, 'no room');
  });

  it('fail if a copy is unusable, and are checked again if it cannot be read', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    scene.volumes.sealSnapshot = () => Promise.reject(new Error('EIO'));
    const names = [await snapshot(scene, 'root', online(id)), await snapshot(scene, 'data', online(id))];
    await scene.advance(20);
    assert.equal((await statusOf(scene, names[0]!)).error, undefined);
    scene.volumes.sealSnapshot = () => Promise.reject(new SnapshotUnusableError('it is raw; expected qcow2'));
    await scene.advance(20);
    for (const name of names) {
      assert.equal((await statusOf(scene, name)).error.message, 'it is raw; expected qcow2');
      assert.ok(snapshotCalls(scene).includes(`removeSnapshot ${name}`));
    }
  });

  it('are aborted when they are deleted', async (t) => {
    const scene = await startAgentScene(t);
    const id = await launch(scene);
    scene.hypervisor().host.holdCopies = true;
    const names = [await snapshot(scene, 'root', online(id)), await snapshot(scene, 'data', online(id))];
    for (const name of names) await scene.api.ok('DELETE', `${CONTENTS}/${name}`);
    await scene.settle();
    for (const name of names) {
      assert.ok(await isGone(scene, `${CONTENTS}/${name}`));
      assert.equal(await scene.hypervisor().copyState(id, name), undefined);
    }
    assert.equal(scene.hypervisor().get(id)?.current.state, 'running');
  });

  for (let writes = 0; writes < 5; writes++) {
    it(`are copied once if the agent is killed after ${writes} writes`, async (t) => {
      const scene = await startAgentScene(t);
      const id = await launch(scene);
      let moments = 0;
      scene.hypervisor().host.onCopy = () => moments++;
      const first = await snapshot(scene, 'root', online(id));
      scene.cutAfter(writes);
      const second = await snapshot(scene, 'data', online(id));
      await scene.restart();
      await scene.advance(10);
      const [one, two] = [await statusOf(scene, first), await statusOf(scene, second)];
      assert.deepEqual([one.readyToUse, two.readyToUse, moments], [true, true, 1]);
      assert.equal(one.creationTime, two.creationTime);
    });
  }
});

describe('volumes from snapshots', () => {
  const toFill = {
    metadata: {
      annotations: { 'selfsame.io/volume-copy-node': NODE },
      finalizers: ['selfsame.io/volume-copy', 'selfsame.io/volume-data'],
    },
    attributes: { snapshot: `node/${NODE}/snap` },
  };

  it('are filled, and then released', async (t) => {
    const scene = await startAgentScene(t);
    await addVolume(scene, 'pv', toFill);
    await scene.settle();
    assert.deepEqual(new Set(snapshotCalls(scene)), new Set(['fill pv']));
    const { finalizers } = (await scene.api.ok('GET', `${VOLUMES}/pv`)).metadata;
    assert.equal(finalizers.includes('selfsame.io/volume-copy'), false);
    assert.equal(finalizers.includes('selfsame.io/volume-data'), true);
  });

  it('are tried again if they cannot be filled, with an Event that says why', async (t) => {
    const scene = await startAgentScene(t);
    const { fill } = scene.volumes;
    scene.volumes.fill = () => Promise.reject(new Error('no space left'));
    await addVolume(scene, 'pv', toFill);
    await scene.settle();
    const { items } = await scene.api.ok('GET', '/api/v1/namespaces/default/events');
    const found = items.find(({ reason }: Loose) => reason === 'VolumeCopyFailed');
    assert.deepEqual([found?.involvedObject.name, found?.message], ['pv', 'no space left']);
    scene.volumes.fill = fill;
    await scene.advance(40);
    const { finalizers } = (await scene.api.ok('GET', `${VOLUMES}/pv`)).metadata;
    assert.equal(finalizers.includes('selfsame.io/volume-copy'), false);
  });

  it('are filled only by the node that they name', async (t) => {
    const scene = await startAgentScene(t);
    const metadata = { ...toFill.metadata, annotations: { 'selfsame.io/volume-copy-node': 'n2' } };
    await addVolume(scene, 'pv', { ...toFill, metadata });
    await scene.settle();
    assert.deepEqual(snapshotCalls(scene), []);
  });

  /** Starts to fill a volume; the fill ends only when it is aborted. */
  async function startFilling(scene: AgentScene): Promise<{ ended: Promise<void> }> {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    scene.volumes.fill = async (_, { signal }) => {
      begun.resolve();
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      ended.resolve();
      signal?.throwIfAborted();
    };
    await addVolume(scene, 'pv', toFill);
    await begun.promise;
    return { ended: ended.promise };
  }

  it('are no longer filled when they name another node', { timeout: 20_000 }, async (t) => {
    const scene = await startAgentScene(t);
    const { ended } = await startFilling(scene);
    const body = { metadata: { annotations: { 'selfsame.io/volume-copy-node': 'n2' } } };
    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body });
    await ended;
    await scene.settle();
    const { finalizers } = (await scene.api.ok('GET', `${VOLUMES}/pv`)).metadata;
    assert.ok(finalizers.includes('selfsame.io/volume-copy'));
  });

  it('are no longer filled when they are deleted, and their data is removed', async (t) => {
    const scene = await startAgentScene(t);
    await startFilling(scene);
    await scene.api.ok('DELETE', `${VOLUMES}/pv`);
    await scene.settle();
    assert.ok(await isGone(scene, `${VOLUMES}/pv`));
    assert.equal(scene.volumes.calls.at(-1), 'removeData pv');
  });
});

/** The node agent and snapshots of persistent state: copied together with the disks of the guest, or alone. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CONTENTS, NODE, startAgentScene, VMIS, VOLUMES, type AgentScene } from '#test/support/agent-scene.ts';
import type { Loose } from '#test/support/test-api.ts';

const OURS = { 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local', 'selfsame.io/volume-node': NODE };
const STATE = { 'selfsame.io/snapshot-state': 'true' };
const KEEPING = {
  domain: {
    memory: { guest: '128Mi' },
    machine: { type: 'q35' },
    firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223' },
    devices: { tpm: { persistent: true }, disks: [{ name: 'root', disk: { bus: 'virtio' } }], interfaces: [] },
  },
  networks: [],
  volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'claim-root' } }],
};
const NAMING = {
  volumes: [
    { name: 'root', persistentVolumeClaim: { claimName: 'claim-root' } },
    { name: 'vm-state', persistentVolumeClaim: { claimName: 'claim-state' } },
  ],
};
const online = (id: string, size = '2') => ({
  'selfsame.io/snapshot-instance': id,
  'selfsame.io/snapshot-set': 'set-1',
  'selfsame.io/snapshot-set-size': size,
});

/** Starts a guest with a disk and state, and creates the snapshot of its state with the given options. */
async function startScene(t: Parameters<typeof startAgentScene>[0]) {
  const scene = await startAgentScene(t);
  for (const name of ['root', 'state', 'other']) await addVolume(scene, name);
  const root = { source: { path: '/simulated/root', format: 'raw' }, readonly: false } as const;
  scene.volumes.next = { is: 'ready', volumes: new Map([['root', root]]) };
  const { id } = await scene.launch('db', KEEPING, NAMING);
  const steps: string[] = [];
  scene.hypervisor().host.onCopy = (copies) => steps.push(...copies.map(({ source }) => `disk ${source}`));
  scene.volumes.takeSnapshot = async ({ metadata }, _, { state }) => {
    steps.push(state === undefined ? `image ${metadata.name}` : `state ${metadata.name} ${state.domainId ?? 'alone'}`);
  };
  return { scene, id, steps };
}

async function addVolume({ api }: AgentScene, name: string): Promise<void> {
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    claimRef: { namespace: 'default', name: `claim-${name}`, uid: `uid-${name}` },
    csi: { driver: 'local.selfsame.io', volumeHandle: name, volumeAttributes: { scope: 'node' } },
  };
  const metadata = { name, annotations: OURS };
  await api.ok('POST', VOLUMES, { body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec } });
}

async function createSnapshot(scene: AgentScene, volume: string, annotations: Loose): Promise<string> {
  const name = `snap-${volume}`;
  const finalizers = ['selfsame.io/snapshot-data'];
  const body = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name, annotations: { 'selfsame.io/snapshot-node': NODE, ...annotations }, finalizers },
    spec: {
      deletionPolicy: 'Delete',
      driver: 'local.selfsame.io',
      source: { volumeHandle: volume },
      volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'u' },
    },
  };
  await scene.api.ok('POST', CONTENTS, { body });
  await scene.settle();
  return name;
}

const statusOf = async ({ api }: AgentScene, name: string): Promise<Loose> =>
  (await api.ok('GET', `${CONTENTS}/${name}`)).status;

describe('the state of a running guest', () => {
  it('is copied right after the copies of its disks have begun, as of the same moment', async (t) => {
    const { scene, id, steps } = await startScene(t);
    const state = await createSnapshot(scene, 'state', { ...online(id), ...STATE });
    assert.deepEqual(steps, [], 'it waits for the disk');
    const disk = await createSnapshot(scene, 'root', online(id));
    assert.deepEqual(steps, ['disk /simulated/root', `state state ${id}`]);
    const [one, two] = [await statusOf(scene, state), await statusOf(scene, disk)];
    assert.deepEqual([one.readyToUse, two.readyToUse], [true, true]);
    assert.equal(one.creationTime, two.creationTime);
  });

  it('is copied if the guest has no other disk', async (t) => {
    const { scene, id, steps } = await startScene(t);
    const state = await createSnapshot(scene, 'state', { ...online(id, '1'), ...STATE });
    assert.deepEqual(steps, [`state state ${id}`]);
    assert.equal((await statusOf(scene, state)).readyToUse, true);
  });

  it('that cannot be copied fails the disks, too, with the reason', async (t) => {
    const { scene, id } = await startScene(t);
    scene.volumes.takeSnapshot = () => Promise.reject(new Error('no space left'));
    const names = [
      await createSnapshot(scene, 'state', { ...online(id), ...STATE }),
      await createSnapshot(scene, 'root', online(id)),
    ];
    for (const name of names) {
      const { error, readyToUse } = await statusOf(scene, name);
      assert.deepEqual([readyToUse, error.message], [false, 'Cannot copy the state of the guest: no space left']);
    }
  });

  it('is only what its pod mounts as state, whatever a snapshot says about another volume', async (t) => {
    const { scene, id, steps } = await startScene(t);
    const name = await createSnapshot(scene, 'other', { ...online(id, '1'), ...STATE });
    assert.equal((await statusOf(scene, name)).error.message, 'the guest has no disk on this volume');
    assert.deepEqual(steps, []);
  });

  it('is not copied while the guest migrates', async (t) => {
    const { scene, id, steps } = await startScene(t);
    const migrating = (migrationState: Loose) =>
      scene.api.ok('PATCH', `${VMIS}/db/status`, { body: { status: { migrationState } } });
    await migrating({ migrationUid: 'm' });
    await scene.settle();
    const state = await createSnapshot(scene, 'state', { ...online(id, '1'), ...STATE });
    await scene.advance(10);
    assert.deepEqual(steps, []);
    await migrating({ migrationUid: 'm', completed: true, failed: true });
    await scene.advance(10);
    assert.equal((await statusOf(scene, state)).readyToUse, true);
  });
});

it('the state of a stopped VM is copied alone', async (t) => {
  const { scene, steps } = await startScene(t);
  const name = await createSnapshot(scene, 'other', STATE);
  assert.deepEqual(steps, ['state other alone']);
  assert.equal((await statusOf(scene, name)).readyToUse, true);
});

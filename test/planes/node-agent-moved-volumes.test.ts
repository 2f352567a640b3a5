/** The node agent and volumes of guests that move: leftovers, and growth that must wait. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { DiskRefusedError } from '#node/volumes/volumes-port.ts';
import { CLAIMS, NODE, VMIS, VOLUMES, startAgentScene, type AgentScene } from '#test/support/agent-scene.ts';

const HOME = 'selfsame.io/volume-node';
const INCOMING = 'selfsame.io/incoming-node';
const LEFTOVER = 'selfsame.io/leftover-node';

function aVolume(annotations: Record<string, string>): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: 'pv',
      finalizers: ['selfsame.io/volume-data'],
      annotations: { 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local', ...annotations },
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
}

const annotationsOf = async ({ api }: AgentScene) => (await api.ok('GET', `${VOLUMES}/pv`)).metadata.annotations;
const removals = ({ volumes }: AgentScene) => volumes.calls.filter((call) => call.startsWith('remove'));

/** Launches a guest with a disk on the claim `data`. */
async function launch(scene: AgentScene, path: string): Promise<string> {
  scene.volumes.next = {
    is: 'ready',
    volumes: new Map([['root', { source: { path, format: 'raw' }, readonly: false }]]),
  };
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];
  const devices = { disks: [{ name: 'root', disk: { bus: 'virtio' } }] };
  const domain = { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices };
  const { id } = await scene.launch('db', { domain, volumes }, { volumes });
  return id;
}

describe('a leftover of a volume', () => {
  const start = async (t: TestContext, annotations: Record<string, string>) => {
    const scene = await startAgentScene(t);
    await scene.api.ok('POST', VOLUMES, { body: aVolume(annotations) });
    await scene.settle();
    return scene;
  };

  it('is removed by its node, and then its annotation', async (t) => {
    const scene = await start(t, { [HOME]: 'n2', [LEFTOVER]: NODE });
    assert.deepEqual(removals(scene), ['removeLeftover pv']);
    const { [HOME]: home, [LEFTOVER]: leftover } = await annotationsOf(scene);
    assert.deepEqual([home, leftover], ['n2', undefined]);
  });

  const ignored: Record<string, Record<string, string>> = {
    'of another node is ignored': { [HOME]: 'n2', [LEFTOVER]: 'n3' },
    'is ignored if this node is the home of the volume': { [HOME]: NODE, [LEFTOVER]: NODE },
    'is ignored if the volume is coming to this node': { [HOME]: 'n2', [INCOMING]: NODE, [LEFTOVER]: NODE },
  };
  for (const [name, annotations] of Object.entries(ignored)) {
    it(name, async (t) => {
      const scene = await start(t, annotations);
      assert.deepEqual(removals(scene), []);
      assert.equal((await annotationsOf(scene))[LEFTOVER], annotations[LEFTOVER]);
    });
  }

  it('is removed when no guest uses it any more', async (t) => {
    const scene = await start(t, { [HOME]: NODE });
    const id = await launch(scene, '/var/lib/selfsame/n1/volumes/pv/disk.img');
    const annotations = { [HOME]: 'n2', [LEFTOVER]: NODE };
    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: { metadata: { annotations } } });
    await scene.advance(10);
    assert.deepEqual(removals(scene), []);

    await scene.hypervisor().destroy(id);
    await scene.advance(5);
    assert.deepEqual(removals(scene), ['removeLeftover pv']);
    assert.equal((await annotationsOf(scene))[LEFTOVER], undefined);
  });

  it('is retried while it is still a device, and the annotation stays until then', async (t) => {
    const scene = await startAgentScene(t);
    const { removeLeftover } = scene.volumes;
    scene.volumes.removeLeftover = async () => {
      throw new DiskRefusedError('it is still the device of a guest');
    };
    await scene.api.ok('POST', VOLUMES, { body: aVolume({ [HOME]: 'n2', [LEFTOVER]: NODE }) });
    await scene.advance(10);
    assert.equal((await annotationsOf(scene))[LEFTOVER], NODE);
    scene.volumes.removeLeftover = removeLeftover;
    await scene.advance(5);
    assert.equal((await annotationsOf(scene))[LEFTOVER], undefined);
  });

  it('is removed before the volume', async (t) => {
    const scene = await startAgentScene(t);
    const { claimRef: _, ...spec } = (aVolume({}) as { spec: { claimRef: object } }).spec;
    await scene.api.ok('POST', VOLUMES, { body: { ...aVolume({ [HOME]: NODE, [LEFTOVER]: 'n2' }), spec } });
    await scene.api.ok('DELETE', `${VOLUMES}/pv`);
    await scene.settle();
    assert.deepEqual(removals(scene), []);

    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: { metadata: { annotations: { [LEFTOVER]: null } } } });
    await scene.settle();
    assert.deepEqual(removals(scene), ['removeData pv']);
    assert.equal((await scene.api.call('GET', `${VOLUMES}/pv`)).status, 404);
  });
});

describe('a volume that must grow', () => {
  const growCount = ({ volumes }: AgentScene) => volumes.calls.filter((call) => call === 'grow pv').length;
  const start = async (t: TestContext) => {
    const scene = await startAgentScene(t);
    await scene.api.ok('POST', VOLUMES, { body: aVolume({ [HOME]: NODE }) });
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
    await launch(scene, '/var/lib/selfsame/n1/volumes/pv/disk.img');
    return scene;
  };
  const larger = { spec: { capacity: { storage: '2Gi' } } };
  const reportedCapacity = async ({ api }: AgentScene) =>
    (await api.ok('GET', `${CLAIMS}/data`)).status.capacity.storage;

  it('waits until its migration has ended or was cancelled', async (t) => {
    const scene = await start(t);
    const note = (node: string | null) => ({ metadata: { annotations: { [INCOMING]: node } } });
    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: { ...note('n2'), ...larger } });
    await scene.advance(20);
    assert.deepEqual([growCount(scene), await reportedCapacity(scene)], [0, '1Gi']);

    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: note(null) });
    await scene.settle();
    assert.deepEqual([growCount(scene), await reportedCapacity(scene)], [1, '2Gi']);
  });

  it('on shared storage waits for the migration of its guest', async (t) => {
    const scene = await start(t);
    const moving = (completed: boolean) => ({ status: { migrationState: { migrationUid: 'm', completed } } });
    await scene.api.ok('PATCH', `${VMIS}/db/status`, { body: moving(false) });
    await scene.settle();
    await scene.api.ok('PATCH', `${VOLUMES}/pv`, { body: larger });
    await scene.advance(20);
    assert.equal(growCount(scene), 0);

    await scene.api.ok('PATCH', `${VMIS}/db/status`, { body: moving(true) });
    await scene.advance(10);
    assert.deepEqual([growCount(scene), await reportedCapacity(scene)], [1, '2Gi']);
  });
});

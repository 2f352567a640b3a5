/** The marks on the real engine: what brings them, changes them and takes them away. The test plays everybody else. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { PROTECTED_VMS_ANNOTATION, PROTECTION_LABEL } from '#api/delete-protection.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, virtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';
import { Mortal } from '#test/crash/mortal-client.ts';
import { protectionController } from '#controllers/protection/protection-controller.ts';
import { groupResource } from '#kube/meta.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, startVmiScene, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualmachines.kubevirt.io';
const RECORD_DEFINITION = DEFINITION.replace('virtualmachines.kubevirt.io', groupResource(VIRTUAL_MACHINE_IDENTITIES));
const PLACES: Readonly<Record<string, string>> = {
  namespace: '/api/v1/namespaces/default',
  definition: DEFINITION,
  records: RECORD_DEFINITION,
  disk: `${CLAIMS}/disk`,
  'pv-disk': `${VOLUMES}/pv-disk`,
  spare: `${CLAIMS}/spare`,
  'pv-spare': `${VOLUMES}/pv-spare`,
};

/** Two claims, disk and spare, with their volumes. */
async function startScene(t: TestContext, controller: PlaneController = protectionController): Promise<VmiScene> {
  const scene = await startVmiScene(t, [controller], [virtualMachine, virtualMachineIdentity]);
  for (const name of ['disk', 'spare']) {
    await scene.claim(name, { storageClassName: '' });
    await bind(scene, name);
  }
  return scene;
}

async function bind(scene: VmiScene, claim: string): Promise<void> {
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'csi.example.com', volumeHandle: claim },
    claimRef: { namespace: 'default', name: claim },
  };
  const body = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${claim}` }, spec };
  await scene.ok('POST', VOLUMES, { body });
  await scene.settle();
  assert.equal((await scene.ok('GET', `${CLAIMS}/${claim}`)).status.phase, 'Bound');
}

function templateOf(...claims: string[]): Loose {
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  return { template: { spec: { domain: {}, volumes } } };
}

async function make(scene: VmiScene, name: string, claims: string[], metadata: Loose = {}): Promise<Loose> {
  const spec = { runStrategy: 'Halted', ...templateOf(...claims) };
  const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name, ...metadata }, spec };
  const made = await scene.ok('POST', VMS, { body });
  await scene.settle();
  return made;
}

async function change(scene: VmiScene, url: string, body: Loose): Promise<void> {
  await scene.ok('PATCH', url, { body });
  await scene.settle();
}

const PROTECTED = { labels: { [PROTECTION_LABEL]: 'true' } };
const protect = (scene: VmiScene, vm: string) => change(scene, `${VMS}/${vm}`, { metadata: PROTECTED });
const unprotect = (scene: VmiScene, vm: string) =>
  change(scene, `${VMS}/${vm}`, { metadata: { labels: { [PROTECTION_LABEL]: null } } });

/** By place; those without a mark are left out. */
async function marks(scene: VmiScene): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [place, url] of Object.entries(PLACES)) {
    const { status, body } = await scene.call('GET', url);
    const mark = status === 200 ? body.metadata.annotations?.[PROTECTED_VMS_ANNOTATION] : undefined;
    if (mark !== undefined) found[place] = mark;
  }
  return found;
}

const OF_DB = { namespace: 'db', definition: 'default/db', records: 'default/db', disk: 'db', 'pv-disk': 'default/db' };

test('marks come with the label and go with it', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk']);
  assert.deepEqual(await marks(scene), {});
  await protect(scene, 'db');
  assert.deepEqual(await marks(scene), OF_DB);
  await unprotect(scene, 'db');
  assert.deepEqual(await marks(scene), {});
});

test('a mark that somebody changes or removes comes back, one that somebody forges goes', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  for (const forged of [null, '', 'nobody']) {
    for (const url of Object.values(PLACES)) {
      await change(scene, url, { metadata: { annotations: { [PROTECTED_VMS_ANNOTATION]: forged } } });
    }
    await scene.advance(10);
    assert.deepEqual(await marks(scene), OF_DB, `after ${JSON.stringify(forged)}`);
  }
});

test('the marks follow the claims of the template', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  await change(scene, `${VMS}/db`, { spec: templateOf('spare') });
  assert.deepEqual(await marks(scene), { ...omit(OF_DB, 'disk', 'pv-disk'), spare: 'db', 'pv-spare': 'default/db' });
});

test('a status write of a protected VM writes nothing, and wakes nobody who would', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  const before = scene.revision;
  await change(scene, `${VMS}/db/status`, { status: { printableStatus: 'Stopped' } });
  assert.equal(scene.revision, before + 1);
});

test('a volume for a claim that has another is no disk of the VM: whoever made it may delete it', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  const { spec } = await scene.ok('GET', `${VOLUMES}/pv-disk`);
  const body = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'second', annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.example.com' } },
    spec: { ...spec, csi: { ...spec.csi, volumeHandle: 'second' }, persistentVolumeReclaimPolicy: 'Delete' },
  };
  await scene.ok('POST', VOLUMES, { body });
  await scene.settle();
  const second = await scene.ok('GET', `${VOLUMES}/second`);
  assert.equal(second.status.phase, 'Released');
  assert.equal(second.metadata.annotations[PROTECTED_VMS_ANNOTATION], undefined);
  assert.deepEqual(await marks(scene), OF_DB);
});

test('two VMs on one claim: it stays marked until neither needs it', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'web', ['disk'], PROTECTED);
  await make(scene, 'db', ['disk', 'spare'], PROTECTED);
  const both = {
    namespace: 'db, web',
    definition: 'default/db, default/web',
    records: 'default/db, default/web',
    disk: 'db, web',
    'pv-disk': 'default/db, default/web',
  };
  assert.deepEqual(await marks(scene), { ...both, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'web');
  assert.deepEqual(await marks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'db');
  assert.deepEqual(await marks(scene), {});
});

test('a VM that is being deleted protects nothing, and neither does one that is gone', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], { ...PROTECTED, finalizers: ['example.com/wait'] });
  await make(scene, 'web', ['spare'], PROTECTED);
  await scene.ok('DELETE', `${VMS}/db`);
  await scene.settle();
  const ofWeb = {
    namespace: 'web',
    definition: 'default/web',
    records: 'default/web',
    spare: 'web',
    'pv-spare': 'default/web',
  };
  assert.deepEqual(await marks(scene), ofWeb);
  await scene.ok('DELETE', `${VMS}/web`);
  await scene.settle();
  assert.deepEqual(await marks(scene), {});
});

test('claims that a protected VM controls are marked, also where its template does not name them', async (t) => {
  const scene = await startScene(t);
  const { uid } = (await make(scene, 'db', ['disk'], PROTECTED)).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid };
  await change(scene, `${CLAIMS}/spare`, { metadata: { ownerReferences: [owner] } });
  assert.deepEqual(await marks(scene), OF_DB, 'an owner that does not control it');
  await change(scene, `${CLAIMS}/spare`, { metadata: { ownerReferences: [{ ...owner, controller: true }] } });
  assert.deepEqual(await marks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'db');
  assert.deepEqual(await marks(scene), {});
  await protect(scene, 'db');
  assert.deepEqual(await marks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
});

test('a claim that comes later is marked, and its volume as soon as it is bound', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['late'], PROTECTED);
  const markOf = async (url: string) => (await scene.ok('GET', url)).metadata.annotations?.[PROTECTED_VMS_ANNOTATION];
  await scene.claim('late', { storageClassName: '' });
  assert.equal(await markOf(`${CLAIMS}/late`), 'db');
  await bind(scene, 'late');
  assert.equal(await markOf(`${VOLUMES}/pv-late`), 'default/db');
  // Its claim is taken away, as by a restore: what is left of it is nobody's disk any more.
  await scene.ok('DELETE', `${CLAIMS}/late`);
  await scene.settle();
  assert.equal(await markOf(`${VOLUMES}/pv-late`), undefined);
});

test('a claim that names the volume of another does not get it marked', async (t) => {
  const scene = await startScene(t);
  await scene.claim('thief', { storageClassName: '', volumeName: 'pv-spare' });
  await make(scene, 'db', ['thief'], PROTECTED);
  assert.deepEqual(await marks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('a volume that kept the data of an earlier claim of that name is not marked', async (t) => {
  const scene = await startScene(t);
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  await scene.claim('disk', { storageClassName: '' });
  await make(scene, 'db', ['disk'], PROTECTED);
  await change(scene, PLACES['pv-disk']!, { metadata: { labels: { looked: 'at' } } });
  assert.deepEqual(await marks(scene), omit(OF_DB, 'pv-disk'));
});

test('the volume of a claim that is being deleted is marked as long as it is bound to it', async (t) => {
  const scene = await startScene(t);
  const { uid } = (await make(scene, 'db', ['disk'])).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true };
  await change(scene, `${CLAIMS}/spare`, { metadata: { ownerReferences: [owner] } });
  for (const claim of ['disk', 'spare']) {
    await change(scene, `${CLAIMS}/${claim}`, { metadata: { finalizers: ['example.com/wait'] } });
    await scene.ok('DELETE', `${CLAIMS}/${claim}`);
    await scene.settle();
  }
  await protect(scene, 'db');
  assert.deepEqual(await marks(scene), { ...omit(OF_DB, 'disk'), 'pv-spare': 'default/db' });
  for (const claim of ['disk', 'spare']) await change(scene, `${CLAIMS}/${claim}`, { metadata: { finalizers: null } });
  assert.deepEqual(await marks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('what is being deleted is left alone', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk']);
  for (const place of ['disk', 'pv-disk']) {
    await change(scene, PLACES[place]!, { metadata: { finalizers: ['example.com/wait'] } });
    await scene.ok('DELETE', PLACES[place]!);
  }
  await protect(scene, 'db');
  assert.deepEqual(await marks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('a wave of labels writes the definition a few times, and its mark is right in the end', async (t) => {
  const scene = await startScene(t);
  const names = Array.from({ length: 40 }, (_, index) => `vm-${String(index).padStart(2, '0')}`);
  const revisionOf = async () => Number((await scene.ok('GET', DEFINITION)).metadata.resourceVersion);
  let writes = 0;
  let seen = await revisionOf();
  // Backwards, so that each is the new first one.
  for (const name of names.toReversed()) {
    await make(scene, name, [], PROTECTED);
    const now = await revisionOf();
    if (now !== seen) writes++;
    seen = now;
  }
  assert.equal(writes, 10);
  await scene.advance(10);
  const first = 'default/vm-00, default/vm-01, default/vm-02 and others';
  assert.deepEqual(await marks(scene), {
    namespace: 'vm-00, vm-01, vm-02 and others',
    definition: first,
    records: first,
  });
  for (const name of names) await scene.ok('DELETE', `${VMS}/${name}`);
  await scene.settle();
  assert.deepEqual(await marks(scene), {});
});

interface Story {
  act(scene: VmiScene): Promise<void>;
  readonly want: Record<string, string>;
}

const stories: Record<string, Story> = {
  'the label comes': { act: (scene) => protect(scene, 'db'), want: OF_DB },
  'the label comes, the claim is swapped': {
    async act(scene) {
      await protect(scene, 'db');
      await change(scene, `${VMS}/db`, { spec: templateOf('spare') });
    },
    want: { ...omit(OF_DB, 'disk', 'pv-disk'), spare: 'db', 'pv-spare': 'default/db' },
  },
  'the label comes and goes': {
    async act(scene) {
      await protect(scene, 'db');
      await unprotect(scene, 'db');
    },
    want: {},
  },
  'the VM is deleted and another is protected': {
    async act(scene) {
      await protect(scene, 'db');
      await scene.ok('DELETE', `${VMS}/db`);
      await make(scene, 'web', ['spare'], PROTECTED);
    },
    want: {
      namespace: 'web',
      definition: 'default/web',
      records: 'default/web',
      spare: 'web',
      'pv-spare': 'default/web',
    },
  },
};

for (const [sentence, { act, want }] of Object.entries(stories)) {
  test(`lost after any write, the next one brings it to the same end: ${sentence}`, async (t) => {
    const mortal = new Mortal(protectionController);
    const scene = await startScene(t, mortal);
    let cut = true;
    let points = 0;
    for (; cut; points++) {
      await make(scene, 'db', ['disk']);
      assert.deepEqual(await marks(scene), {});
      mortal.diesAfter(points);
      await act(scene);
      cut = mortal.isDead;
      await mortal.restart();
      await scene.settle();
      assert.deepEqual(await marks(scene), want, `lost after write ${points}`);
      await scene.ok('DELETE', `${VMS}?labelSelector=`);
      await scene.settle();
    }
    assert.ok(points > 4, `${points} points`);
  });
}

function omit(record: Record<string, string>, ...keys: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

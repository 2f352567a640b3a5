/** The marks of delete protection on the real engine: what sets, changes and removes them. The test acts as all other components. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { PROTECTED_VMS_ANNOTATION, PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES, virtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';
import { KillableController } from '#test/crash/killable-controller.ts';
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

/** Starts with two claims, disk and spare, with their volumes. */
async function startScene(t: TestContext, controller: PlaneController = protectionController): Promise<VmiScene> {
  const scene = await startVmiScene(t, [controller], [virtualMachine, virtualMachineIdentity]);
  for (const name of ['disk', 'spare']) {
    await scene.addClaim(name, { storageClassName: '' });
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

/** Returns the marks by place, without places that have none. */
async function readMarks(scene: VmiScene): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [place, url] of Object.entries(PLACES)) {
    const { status, body } = await scene.call('GET', url);
    const mark = status === 200 ? body.metadata.annotations?.[PROTECTED_VMS_ANNOTATION] : undefined;
    if (mark !== undefined) found[place] = mark;
  }
  return found;
}

const OF_DB = { namespace: 'db', definition: 'default/db', records: 'default/db', disk: 'db', 'pv-disk': 'default/db' };

test('marks are set and removed with the label', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk']);
  assert.deepEqual(await readMarks(scene), {});
  await protect(scene, 'db');
  assert.deepEqual(await readMarks(scene), OF_DB);
  await unprotect(scene, 'db');
  assert.deepEqual(await readMarks(scene), {});
});

test('a changed or removed mark is restored, and a forged mark is removed', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  for (const forged of [null, '', 'nobody']) {
    for (const url of Object.values(PLACES)) {
      await change(scene, url, { metadata: { annotations: { [PROTECTED_VMS_ANNOTATION]: forged } } });
    }
    await scene.advance(10);
    assert.deepEqual(await readMarks(scene), OF_DB, `after ${JSON.stringify(forged)}`);
  }
});

test('the marks follow the claims of the template', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  await change(scene, `${VMS}/db`, { spec: templateOf('spare') });
  assert.deepEqual(await readMarks(scene), {
    ...omit(OF_DB, 'disk', 'pv-disk'),
    spare: 'db',
    'pv-spare': 'default/db',
  });
});

test('a status write of a protected VM leads to no other write', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk'], PROTECTED);
  const before = scene.revision;
  await change(scene, `${VMS}/db/status`, { status: { printableStatus: 'Stopped' } });
  assert.equal(scene.revision, before + 1);
});

test('a second volume for a bound claim is not a disk of the VM, and is not marked', async (t) => {
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
  assert.deepEqual(await readMarks(scene), OF_DB);
});

test('a claim of two VMs is marked until neither is protected', async (t) => {
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
  assert.deepEqual(await readMarks(scene), { ...both, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'web');
  assert.deepEqual(await readMarks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'db');
  assert.deepEqual(await readMarks(scene), {});
});

test('a VM that is being deleted or is deleted protects nothing', async (t) => {
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
  assert.deepEqual(await readMarks(scene), ofWeb);
  await scene.ok('DELETE', `${VMS}/web`);
  await scene.settle();
  assert.deepEqual(await readMarks(scene), {});
});

test('claims that a protected VM controls are marked, even if its template does not name them', async (t) => {
  const scene = await startScene(t);
  const { uid } = (await make(scene, 'db', ['disk'], PROTECTED)).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid };
  await change(scene, `${CLAIMS}/spare`, { metadata: { ownerReferences: [owner] } });
  assert.deepEqual(await readMarks(scene), OF_DB, 'an owner that does not control it');
  await change(scene, `${CLAIMS}/spare`, { metadata: { ownerReferences: [{ ...owner, controller: true }] } });
  assert.deepEqual(await readMarks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
  await unprotect(scene, 'db');
  assert.deepEqual(await readMarks(scene), {});
  await protect(scene, 'db');
  assert.deepEqual(await readMarks(scene), { ...OF_DB, spare: 'db', 'pv-spare': 'default/db' });
});

test('a claim that is created later is marked, and its volume when it is bound', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['late'], PROTECTED);
  const markOf = async (url: string) => (await scene.ok('GET', url)).metadata.annotations?.[PROTECTED_VMS_ANNOTATION];
  await scene.addClaim('late', { storageClassName: '' });
  assert.equal(await markOf(`${CLAIMS}/late`), 'db');
  await bind(scene, 'late');
  assert.equal(await markOf(`${VOLUMES}/pv-late`), 'default/db');
  // The claim is deleted, as by a restore: the volume is no longer a disk of the VM.
  await scene.ok('DELETE', `${CLAIMS}/late`);
  await scene.settle();
  assert.equal(await markOf(`${VOLUMES}/pv-late`), undefined);
});

test('a volume is not marked for a claim that names it but is not bound to it', async (t) => {
  const scene = await startScene(t);
  await scene.addClaim('thief', { storageClassName: '', volumeName: 'pv-spare' });
  await make(scene, 'db', ['thief'], PROTECTED);
  assert.deepEqual(await readMarks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('a volume that kept the data of an earlier claim of that name is not marked', async (t) => {
  const scene = await startScene(t);
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  await scene.addClaim('disk', { storageClassName: '' });
  await make(scene, 'db', ['disk'], PROTECTED);
  await change(scene, PLACES['pv-disk']!, { metadata: { labels: { looked: 'at' } } });
  assert.deepEqual(await readMarks(scene), omit(OF_DB, 'pv-disk'));
});

test('the volume of a claim that is being deleted is marked while it is bound to the claim', async (t) => {
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
  assert.deepEqual(await readMarks(scene), { ...omit(OF_DB, 'disk'), 'pv-spare': 'default/db' });
  for (const claim of ['disk', 'spare']) await change(scene, `${CLAIMS}/${claim}`, { metadata: { finalizers: null } });
  assert.deepEqual(await readMarks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('objects that are being deleted are not marked', async (t) => {
  const scene = await startScene(t);
  await make(scene, 'db', ['disk']);
  for (const place of ['disk', 'pv-disk']) {
    await change(scene, PLACES[place]!, { metadata: { finalizers: ['example.com/wait'] } });
    await scene.ok('DELETE', PLACES[place]!);
  }
  await protect(scene, 'db');
  assert.deepEqual(await readMarks(scene), { namespace: 'db', definition: 'default/db', records: 'default/db' });
});

test('many new labels lead to few writes of the CRD, and its mark is correct in the end', async (t) => {
  const scene = await startScene(t);
  const names = Array.from({ length: 40 }, (_, index) => `vm-${String(index).padStart(2, '0')}`);
  const revisionOf = async () => Number((await scene.ok('GET', DEFINITION)).metadata.resourceVersion);
  let writes = 0;
  let seen = await revisionOf();
  // In reverse order, so that each VM becomes the first one of the mark.
  for (const name of names.toReversed()) {
    await make(scene, name, [], PROTECTED);
    const now = await revisionOf();
    if (now !== seen) writes++;
    seen = now;
  }
  assert.equal(writes, 10);
  await scene.advance(10);
  const first = 'default/vm-00, default/vm-01, default/vm-02 and others';
  assert.deepEqual(await readMarks(scene), {
    namespace: 'vm-00, vm-01, vm-02 and others',
    definition: first,
    records: first,
  });
  for (const name of names) await scene.ok('DELETE', `${VMS}/${name}`);
  await scene.settle();
  assert.deepEqual(await readMarks(scene), {});
});

interface KillCase {
  act(scene: VmiScene): Promise<void>;
  readonly want: Record<string, string>;
}

const killCases: Record<string, KillCase> = {
  'the label is set': { act: (scene) => protect(scene, 'db'), want: OF_DB },
  'the label is set, and the claim is replaced': {
    async act(scene) {
      await protect(scene, 'db');
      await change(scene, `${VMS}/db`, { spec: templateOf('spare') });
    },
    want: { ...omit(OF_DB, 'disk', 'pv-disk'), spare: 'db', 'pv-spare': 'default/db' },
  },
  'the label is set and removed': {
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

for (const [sentence, { act, want }] of Object.entries(killCases)) {
  test(`a controller that is killed after any write is replaced by one that completes the marks: ${sentence}`, async (t) => {
    const killable = new KillableController(protectionController);
    const scene = await startScene(t, killable);
    let cut = true;
    let points = 0;
    for (; cut; points++) {
      await make(scene, 'db', ['disk']);
      assert.deepEqual(await readMarks(scene), {});
      killable.killAfter(points);
      await act(scene);
      cut = killable.isKilled;
      await killable.restart();
      await scene.settle();
      assert.deepEqual(await readMarks(scene), want, `killed after write ${points}`);
      await scene.ok('DELETE', `${VMS}?labelSelector=`);
      await scene.settle();
    }
    assert.ok(points > 4, `${points} points`);
  });
}

function omit(record: Record<string, string>, ...keys: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

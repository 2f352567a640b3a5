/** Protected VMs through the API server: what policies and the webhook refuse, and what still works. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { protectionController } from '#controllers/protection/protection-controller.ts';
import { asAccount, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import { ADMIN, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const REPLACED = { metadata: { annotations: { 'selfsame.io/replaced-by': 'x' } } };
const LABEL = 'kubevirt.io/vm-delete-protection';
const MARK = 'selfsame.io/protected-vms';
const BY = 'selfsame.io/delete-protection-by';
const AT = 'selfsame.io/delete-protection-at';
const REASON = 'selfsame.io/delete-protection-reason';
const VMS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachines';
const CLAIMS = '/api/v1/namespaces/golden/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
const NAMESPACES = '/api/v1/namespaces';
const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualmachines.kubevirt.io';
const FIRST = `remove the label ${LABEL} from them first (virtctl unprotect)`;

let scene: AdmissionScene;
let api: TestApi;
let plane: OperatorPlane;
let markController: { end(): Promise<void> };

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api, plane } = scene);
  markController = plane.run(protectionController);
  await plane.settle();
});
after(() => scene.stop());

let count = 0;
const nextName = (word = 'vm') => `${word}-${++count}`;
const labels = (value: string | null) => ({ metadata: { labels: { [LABEL]: value } } });

/** Creates a VM and settles. */
async function createVm(patch: Loose = {}, name = nextName()): Promise<Loose> {
  const { namespace = 'golden' } = patch.metadata ?? {};
  const spec = { ...disk(`${name}-disk`), domain: { firmware: null } };
  const vm = aVm({ spec: { runStrategy: 'Halted', template: { spec } }, ...patch });
  const body = { ...vm, metadata: { ...vm.metadata, namespace, name } };
  const created = await api.ok('POST', VMS.replace('golden', namespace), { body });
  await plane.settle();
  return created;
}

const disk = (claimName: string) => ({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }, SEED] });
const SEED = { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } };

async function patchAndSettle(path: string, body: Loose): Promise<void> {
  await api.ok('PATCH', path, { body });
  await plane.settle();
}

async function claimOf(vmName: string): Promise<{ claim: string; volume: string }> {
  const name = `${vmName}-disk`;
  const size = { storage: '1Gi' };
  const accessModes = ['ReadWriteOnce'];
  const spec = { storageClassName: '', accessModes, resources: { requests: size } };
  await api.ok('POST', CLAIMS, { body: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec } });
  const volume = {
    ...{ capacity: size, accessModes, persistentVolumeReclaimPolicy: 'Retain' },
    csi: { driver: 'csi.example.com', volumeHandle: name },
    claimRef: { namespace: 'golden', name },
  };
  const metadata = { name: `pv-${name}` };
  await api.ok('POST', VOLUMES, { body: { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec: volume } });
  await plane.settle();
  assert.equal((await api.ok('GET', `${CLAIMS}/${name}`)).status.phase, 'Bound');
  return { claim: `${CLAIMS}/${name}`, volume: `${VOLUMES}/pv-${name}` };
}

async function releaseAll(): Promise<void> {
  const { items } = await api.ok('GET', '/apis/kubevirt.io/v1/virtualmachines');
  for (const { metadata } of items) {
    const path = `${VMS.replace('golden', metadata.namespace)}/${metadata.name}`;
    if (metadata.labels?.[LABEL] !== undefined) await api.ok('PATCH', path, { body: labels(null) });
  }
  await plane.settle();
}

/** Returns the policy's message `db cannot be deleted ...`, or '' if no policy refused the request. */
const policyMessage = ({ body }: TestResponse): string => body.message?.split('denied request: ')[1] ?? '';
const webhookMessage = ({ body }: TestResponse): string => body.message?.split('denied the request: ')[1] ?? '';
const exists = async (path: string) => (await api.call('GET', path)).status === 200;
const refusalMessage = (name: string, reason = '') =>
  `VirtualMachine ${name} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it` +
  `${reason}; to end the protection: virtctl unprotect ${name} -n golden`;

describe('a VM', () => {
  const reasons: Record<string, [string, string]> = {
    'names the reason': ['holds the ledger', 'holds the ledger'],
    'joins the lines of a reason': ['the ledger\r\nof "2026"', 'the ledger  of "2026"'],
    'accepts the longest reason': ['ü'.repeat(1024), 'ü'.repeat(1024)],
  };
  for (const [title, [reason, shown]] of Object.entries(reasons)) {
    test(`the refusal ${title}`, async () => {
      const { metadata } = await createVm({
        metadata: { labels: { [LABEL]: 'true' }, annotations: { [REASON]: reason } },
      });
      const answer = await api.call('DELETE', `${VMS}/${metadata.name}`);
      assert.equal(policyMessage(answer), refusalMessage(metadata.name, ` (reason: ${shown})`));
    });
  }

  for (const value of ['true', 'True']) {
    test(`labelled ${value} is not deleted`, async () => {
      const { metadata } = await createVm(labels(value));
      const path = `${VMS}/${metadata.name}`;
      for (const body of [
        undefined,
        { gracePeriodSeconds: 0 },
        { propagationPolicy: 'Orphan' },
        { propagationPolicy: 'Foreground', preconditions: { uid: metadata.uid } },
        { dryRun: ['All'] },
      ]) {
        const answer = await api.call('DELETE', path, { body });
        assert.equal(answer.status, 422, JSON.stringify(body));
        assert.equal(answer.body.reason, 'Invalid');
        assert.equal(policyMessage(answer), refusalMessage(metadata.name));
      }
      assert.equal((await api.ok('GET', path)).metadata.deletionTimestamp, undefined);
    });
  }

  const unprotected: Record<string, Loose> = {
    ...Object.fromEntries(['False', 'false', 'niceValue', 'TRUE', ''].map((value) => [`"${value}"`, labels(value)])),
    'with other labels only': { metadata: { labels: { a: 'true' } } },
    'without labels': {},
  };
  for (const [name, patch] of Object.entries(unprotected)) {
    test(`labelled ${name} is deleted`, async () => {
      const { metadata } = await createVm(patch);
      await api.ok('DELETE', `${VMS}/${metadata.name}`);
      assert.equal(await exists(`${VMS}/${metadata.name}`), false);
    });
  }

  const json = 'application/json-patch+json';
  const path = `/metadata/labels/${LABEL.replace('/', '~1')}`;
  const disables: Record<string, { body: Loose; contentType?: string }> = {
    'the label set to false': { body: labels('false') },
    'the label removed': { body: labels(null) },
    'the label removed by a JSON patch': { body: [{ op: 'remove', path }], contentType: json },
    'the label replaced by a JSON patch': { body: [{ op: 'replace', path, value: 'False' }], contentType: json },
    'all labels removed': { body: { metadata: { labels: null } } },
  };
  for (const [name, request] of Object.entries(disables)) {
    test(`is deleted with ${name}`, async () => {
      const { metadata } = await createVm(labels('true'));
      const at = `${VMS}/${metadata.name}`;
      assert.equal((await api.call('DELETE', at)).status, 422);
      await api.ok('PATCH', at, request);
      await api.ok('DELETE', at);
      assert.equal(await exists(at), false);
    });
  }

  test('stays when all VMs are deleted; other VMs are deleted', async () => {
    const group = { team: nextName('team') };
    const values = [undefined, 'true', 'false', 'True', undefined];
    const created: Loose[] = [];
    for (const value of values) {
      created.push(
        await createVm({ metadata: { labels: { ...group, ...(value === undefined ? {} : { [LABEL]: value }) } } }),
      );
    }
    const answer = await api.call('DELETE', `${VMS}?labelSelector=team%3D${group.team}`);
    assert.equal(answer.status, 422);
    assert.match(policyMessage(answer), /^VirtualMachine vm-\d+ cannot be deleted/);
    const remaining = await Promise.all(created.map(({ metadata }) => exists(`${VMS}/${metadata.name}`)));
    assert.deepEqual(remaining, [false, true, false, true, false]);
  });

  test('whose owner is deleted stays until it is no longer protected', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: nextName('owner') } };
    const maps = '/api/v1/namespaces/golden/configmaps';
    const { metadata } = await api.ok('POST', maps, { body: owner });
    const ownerReferences = [{ ...owner, metadata: undefined, name: metadata.name, uid: metadata.uid }];
    const vm = await createVm({ metadata: { ...labels('true').metadata, ownerReferences } });
    const path = `${VMS}/${vm.metadata.name}`;
    await api.ok('DELETE', `${maps}/${metadata.name}`);
    await plane.settle();
    assert.equal(await exists(`${maps}/${metadata.name}`), false);
    assert.deepEqual((await api.ok('GET', path)).metadata, vm.metadata);
    // The deletion is retried until it is allowed.
    await patchAndSettle(path, labels('false'));
    const known = plane.informer(VIRTUAL_MACHINES);
    await known.waitUntil(() => known.get(`golden/${vm.metadata.name}`) === undefined);
    assert.equal(await exists(path), false);
  });
});

describe('what a protected VM depends on', () => {
  /** Removes the label, and with it all protection by the policies. */
  const release = (vm: Loose) => patchAndSettle(`${VMS}/${vm.metadata.name}`, labels(null));

  test('its namespace is not deleted, and nothing in it is changed', async () => {
    const name = nextName('ns');
    const path = `${NAMESPACES}/${name}`;
    await api.ok('POST', NAMESPACES, { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
    const inside = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' } };
    await api.ok('POST', `${path}/configmaps`, { body: inside });
    const vms = VMS.replace('golden', name);
    for (const vm of ['web', 'db']) await createVm({ metadata: { ...labels('true').metadata, namespace: name } }, vm);
    const { revision } = api.store;
    for (const body of [undefined, { gracePeriodSeconds: 0 }, { propagationPolicy: 'Orphan' }, { dryRun: ['All'] }]) {
      const answer = await api.call('DELETE', path, { body, user: ADMIN });
      assert.equal(answer.status, 403);
      assert.equal(answer.body.reason, 'Forbidden');
      assert.equal(
        policyMessage(answer),
        `Namespace "${name}" cannot be deleted: it holds the protected VirtualMachine db, web; ${FIRST}`,
      );
    }
    await plane.settle();
    assert.equal(api.store.revision, revision);
    assert.equal((await api.ok('GET', path)).status.phase, 'Active');

    await patchAndSettle(`${vms}/db`, labels('false'));
    assert.match(policyMessage(await api.call('DELETE', path)), /the protected VirtualMachine web;/);
    await patchAndSettle(`${vms}/web`, labels(null));
    await api.ok('DELETE', path);
    await plane.settle();
    assert.equal(await exists(path), false);
  });

  test('namespaces cannot be deleted as a collection', async () => {
    assert.equal((await api.call('DELETE', NAMESPACES)).status, 405);
  });

  test('its claim and the volume of the claim are not deleted', async () => {
    const vm = await createVm(labels('true'));
    const { name } = vm.metadata;
    const { claim, volume } = await claimOf(name);
    const ofClaim = await api.call('DELETE', claim);
    assert.equal(ofClaim.status, 403);
    assert.equal(
      policyMessage(ofClaim),
      `PersistentVolumeClaim "${name}-disk" cannot be deleted: it is a disk of the protected VirtualMachine ${name}; ${FIRST}`,
    );
    const ofVolume = await api.call('DELETE', volume);
    assert.equal(ofVolume.status, 403);
    assert.equal(
      policyMessage(ofVolume),
      `PersistentVolume "pv-${name}-disk" cannot be deleted: it holds a disk of the protected VirtualMachine golden/${name}; ${FIRST}`,
    );
    assert.equal((await api.call('DELETE', claim, { user: asAccount('storage-controller') })).status, 403);
    await release(vm);
    await api.ok('DELETE', claim);
    await plane.settle();
    await api.ok('DELETE', volume);
  });

  test('deleting all claims deletes all except its own', async () => {
    const [vm, other] = [await createVm(labels('True')), await createVm()];
    const [mine, theirs] = [await claimOf(vm.metadata.name), await claimOf(other.metadata.name)];
    const team = nextName('team');
    for (const { claim } of [mine, theirs]) await patchAndSettle(claim, { metadata: { labels: { team } } });
    const answer = await api.call('DELETE', `${CLAIMS}?labelSelector=team%3D${team}`);
    assert.equal(answer.status, 403);
    assert.match(policyMessage(answer), new RegExp(`disk of the protected VirtualMachine ${vm.metadata.name};`));
    await plane.settle();
    assert.deepEqual([await exists(mine.claim), await exists(theirs.claim)], [true, false]);
  });

  test('a restore replaces its claim, and the volume of the previous claim may be deleted', async () => {
    const vm = await createVm(labels('true'));
    const { claim, volume } = await claimOf(vm.metadata.name);
    await markController.end();
    assert.equal((await api.call('DELETE', claim, { user: asAccount('restore-controller') })).status, 403);
    await api.ok('PATCH', claim, { body: REPLACED, user: asAccount('restore-controller') });
    await api.ok('DELETE', claim, { user: asAccount('restore-controller') });
    await plane.settle();
    // While the mark exists, its finalizer stays: a volume that is only Released would be deleted with its data.
    assert.equal((await api.ok('GET', volume)).status.phase, 'Bound');
    assert.equal((await api.call('DELETE', volume)).status, 403);
    markController = plane.run(protectionController);
    await plane.settle();
    assert.equal((await api.ok('GET', volume)).status.phase, 'Released');
    await api.ok('DELETE', volume);
  });

  test('the definition of the kind is not deleted while a VM is protected', async () => {
    const vm = await createVm(labels('true'), 'a-first');
    const answer = await api.call('DELETE', DEFINITION);
    assert.equal(answer.status, 403);
    assert.match(
      policyMessage(answer),
      /^CustomResourceDefinition "virtualmachines.kubevirt.io" cannot be deleted: it defines the protected VirtualMachine golden\/a-first, .*; remove the label/,
    );
    assert.equal((await api.ok('GET', DEFINITION)).metadata.deletionTimestamp, undefined);
    await release(vm);
    assert.equal((await api.call('DELETE', DEFINITION)).status, 403);
    await releaseAll();
    // A dry run, because other tests still need the definition.
    await api.ok('DELETE', `${DEFINITION}?dryRun=All`);
  });
});

describe('marks', () => {
  test('are written only by our controllers, on every route', async () => {
    const vm = await createVm(labels('true'));
    const { claim, volume } = await claimOf(vm.metadata.name);
    const golden = `${NAMESPACES}/golden`;
    const paths = [golden, claim, volume, DEFINITION];
    const pointer = `/metadata/annotations/${MARK.replace('/', '~1')}`;
    for (const path of paths.flatMap((objectPath) => [objectPath, `${objectPath}/status`])) {
      const before = (await api.ok('GET', path.replace(/\/status$/, ''))).metadata;
      assert.ok(before.annotations[MARK], path);
      const note = (value: unknown) => ({ body: { metadata: { annotations: { [MARK]: value } } } });
      const json = { body: [{ op: 'remove', path: pointer }], contentType: 'application/json-patch+json' };
      for (const request of [
        note(null),
        note(''),
        note('nobody'),
        { body: { metadata: { annotations: null } } },
        json,
      ]) {
        for (const user of [ADMIN, asAccount('vm-controller')]) {
          const answer = await api.call('PATCH', path, { ...request, user });
          if (user === ADMIN && answer.status !== 200) {
            assert.equal(policyMessage(answer), `${MARK} is written by Selfsame only`, `${path}: ${answer.text}`);
          }
          // Servers that ignore annotations in a status write keep the marks.
          const { metadata } = await api.ok('GET', path.replace(/\/status$/, ''));
          assert.equal(metadata.annotations[MARK], before.annotations[MARK], path);
        }
      }
    }
    for (const path of paths) {
      assert.equal(
        (await api.call('PATCH', path, { body: { metadata: { annotations: { [MARK]: null } } } })).status,
        403,
      );
      await api.ok('PATCH', path, { body: { metadata: { annotations: { other: 'x' } } } });
    }
    const namespace = await api.ok('GET', golden);
    delete namespace.metadata.annotations[MARK];
    for (const path of [golden, `${golden}/status`, `${golden}/finalize`]) {
      assert.equal((await api.call('PUT', path, { body: namespace })).status, 403, path);
    }
  });
});

describe('protected-by and reason', () => {
  const notes = ({ metadata }: Loose) => [BY, AT, REASON].map((key) => metadata.annotations?.[key]);
  const carol = { name: 'carol', groups: ADMIN.groups };
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

  test('are recorded by the write that protects, cannot be forged, and end with the protection', async () => {
    const { metadata } = await createVm({ metadata: { annotations: { [BY]: 'forged', [AT]: 'never' } } });
    const path = `${VMS}/${metadata.name}`;
    assert.deepEqual(notes({ metadata }), [undefined, undefined, undefined]);

    const protect = { labels: { [LABEL]: 'true' }, annotations: { [REASON]: 'gold', [BY]: 'forged' } };
    const protectedVm = await api.ok('PATCH', path, { body: { metadata: protect }, user: carol });
    assert.deepEqual([notes(protectedVm)[0], notes(protectedVm)[2]], ['carol', 'gold']);
    assert.match(notes(protectedVm)[1], isTime);

    for (const annotations of [
      { [BY]: 'eve', [AT]: '2020-01-01T00:00:00Z' },
      { [BY]: null, [AT]: null },
    ]) {
      const kept = await api.ok('PATCH', path, { body: { metadata: { annotations } } });
      assert.deepEqual(notes(kept), notes(protectedVm));
    }
    const { annotations: _, ...bare } = (await api.ok('GET', path)).metadata;
    const replaced = await api.ok('PUT', path, { body: { ...protectedVm, metadata: bare } });
    assert.deepEqual(notes(replaced).slice(0, 2), notes(protectedVm).slice(0, 2));

    await api.ok('PATCH', path, { body: { metadata: { annotations: { [REASON]: 'gold' } } } });
    const ended = await api.ok('PATCH', path, { body: labels('false') });
    assert.deepEqual([notes(ended)[0], notes(ended)[2]], ['admin', undefined]);
  });

  test('a reason that is too long is refused', async () => {
    const { metadata } = await createVm();
    const body = { metadata: { annotations: { [REASON]: 'x'.repeat(1025) } } };
    const answer = await api.call('PATCH', `${VMS}/${metadata.name}`, { body });
    assert.equal(answer.status, 422);
    assert.match(answer.body.message, /must have at most 1024 characters, but has 1025/);
  });

  for (const value of ['TRUE', 'yes', '1', 'on', 'enabled']) {
    test(`${value} causes a warning when it is set, and does not protect`, async () => {
      const want = `label ${LABEL}: "${value}" does not protect the VirtualMachine; only "true" and "True" do`;
      const { metadata } = await createVm();
      const path = `${VMS}/${metadata.name}`;
      assert.deepEqual((await api.call('PATCH', path, { body: labels(value) })).warnings, [want]);
      const unrelated = { body: { metadata: { annotations: { a: 'b' } } } };
      assert.deepEqual((await api.call('PATCH', path, unrelated)).warnings, []);
      await api.ok('DELETE', path);
    });
  }
});

describe('between label and mark', () => {
  before(async () => {
    await releaseAll();
    await markController.end();
  });
  after(async () => {
    markController = plane.run(protectionController);
    await plane.settle();
  });

  test('a live lookup refuses with the same message', async () => {
    const namespace = nextName('ns');
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    await api.ok('POST', NAMESPACES, { body });
    await createVm({ metadata: { ...labels('true').metadata, namespace } }, 'db');
    const vm = await createVm(labels('true'));
    const { name } = vm.metadata;
    const { claim, volume } = await claimOf(name);
    const wants: Record<string, RegExp> = {
      [`${NAMESPACES}/${namespace}`]:
        /^Namespace "ns-\d+" cannot be deleted: it holds the protected VirtualMachine db;/,
      [claim]: new RegExp(`cannot be deleted: it is a disk of the protected VirtualMachine ${name}; remove the label`),
      [volume]: new RegExp(`cannot be deleted: it holds a disk of the protected VirtualMachine golden/${name}; remove`),
      [DEFINITION]: /cannot be deleted: it defines the protected VirtualMachine golden\/.*; remove the label/,
    };
    for (const [path, want] of Object.entries(wants)) {
      const answer = await api.call('DELETE', path);
      assert.equal(answer.status, 403, `${path}: ${answer.text}`);
      assert.match(webhookMessage(answer), want);
    }
    await api.ok('PATCH', claim, { body: REPLACED, user: asAccount('restore-controller') });
    await api.ok('DELETE', `${claim}?dryRun=All`, { user: asAccount('restore-controller') });
    await api.ok('PATCH', `${VMS}/${name}`, { body: labels('false') });
    await api.ok('DELETE', claim);
  });

  test('an unavailable webhook does not prevent deletions', async () => {
    const name = nextName('ns');
    await api.ok('POST', NAMESPACES, { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
    const { metadata } = await createVm(labels('true'));
    const { claim } = await claimOf(metadata.name);
    const revive = scene.loseWebhook();
    try {
      await api.ok('DELETE', `${NAMESPACES}/${name}`);
      await api.ok('DELETE', `${claim}?dryRun=All`);
      // The policies do not need the webhook.
      assert.equal(policyMessage(await api.call('DELETE', `${VMS}/${metadata.name}`)), refusalMessage(metadata.name));
    } finally {
      revive();
    }
  });
});

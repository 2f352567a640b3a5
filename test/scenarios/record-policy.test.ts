/**
 * The identity record of a VM is deleted only with the VM, and only our controllers write it, whatever permissions a
 * user has.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RECORD_FINALIZER } from '#api/names.ts';
import { asAccount } from '#operator/testing/operator-plane.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { TestResponse, CallOptions, Loose, TestApi } from '#test/support/test-api.ts';

const RECORDS = '/apis/identity.selfsame.io/v1/namespaces/golden/virtualmachineidentities';
const VMS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachines';
const MASTERS = ['system:masters', 'system:authenticated'];
const adminUser = (name: string): CallOptions => ({ user: { name, groups: MASTERS } });
const builtInAccount = (name: string) => adminUser(`system:serviceaccount:kube-system:${name}`);
const ownAccount = (name: string): CallOptions => ({ user: { ...asAccount(name), groups: MASTERS } });

let scene: AdmissionScene;
let api: TestApi;

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api } = scene);
});
after(() => scene.stop());

let count = 0;

/** Creates a record with devices. Its owner is stored, too, so that the garbage collector leaves the record alone. */
async function createRecord({ isOwned = true }: { readonly isOwned?: boolean } = {}): Promise<Loose> {
  const name = `vm-${++count}`;
  const spec = { runStrategy: 'Halted', template: { spec: { domain: { memory: { guest: '128Mi' } } } } };
  const vm = await api.ok('POST', VMS, {
    body: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name }, spec },
  });
  const { uid } = vm.metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid, controller: true };
  const body = {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { name, finalizers: [RECORD_FINALIZER], ...(isOwned ? { ownerReferences: [owner] } : {}) },
    spec: { firmware: { uuid: uid } },
  };
  await api.ok('POST', RECORDS, { body });
  const status = { devices: [{ id: 'disk-root', type: 'disk', device: 'disk' }] };
  return await api.ok('PATCH', `${RECORDS}/${name}/status`, {
    body: { status },
    ...ownAccount('device-map-controller'),
  });
}

type Attempt = (path: string, record: Loose, as: CallOptions) => Promise<TestResponse>;

const patch =
  (body: Loose, at = ''): Attempt =>
  (path, _, as) =>
    api.call('PATCH', path.replace('?', `${at}?`), { ...as, body });
const jsonPatch =
  (...body: Loose[]): Attempt =>
  (path, _, as) =>
    api.call('PATCH', path, { ...as, body, contentType: 'application/json-patch+json' });

const deletes: Record<string, Attempt> = {
  delete: (path, _, as) => api.call('DELETE', path, as),
  'delete in the foreground': (path, _, as) => api.call('DELETE', `${path}&propagationPolicy=Foreground`, as),
  'delete without a grace period': (path, _, as) => api.call('DELETE', `${path}&gracePeriodSeconds=0`, as),
  'delete a collection': (path, { metadata }, as) =>
    api.call('DELETE', `${RECORDS}?${path.split('?')[1]}&fieldSelector=metadata.name%3D${metadata.name}`, as),
};

const writes: Record<string, Attempt> = {
  'change the spec': patch({ spec: { firmware: { serial: 'mine' } } }),
  'empty the devices': patch({ status: { devices: null } }, '/status'),
  'empty the status': patch({ status: null }, '/status'),
  'replace the status': (path, record, as) =>
    api.call('PUT', path.replace('?', '/status?'), { ...as, body: { ...record, status: { devices: [] } } }),
  'remove the finalizer by merge patch': patch({ metadata: { finalizers: null } }),
  'remove the finalizer by JSON patch': jsonPatch({ op: 'remove', path: '/metadata/finalizers/0' }),
  'add a finalizer': jsonPatch({ op: 'add', path: '/metadata/finalizers/-', value: 'example.com/mine' }),
  'remove the owner': patch({ metadata: { ownerReferences: null } }),
  'change its owner': jsonPatch({ op: 'replace', path: '/metadata/ownerReferences/0/uid', value: 'x' }),
};

const users: Record<string, CallOptions> = {
  'a cluster administrator': {},
  'the webhook': ownAccount('selfsame-webhook'),
  'the snapshot controller': ownAccount('snapshot-controller'),
  'the job controller of Kubernetes': builtInAccount('job-controller'),
};

for (const [kind, attempts] of Object.entries({ deleted: deletes, changed: writes })) {
  for (const [how, attempt] of Object.entries(attempts)) {
    test(`refuses: ${how}`, async () => {
      const record = await createRecord();
      const { name } = record.metadata;
      for (const [who, as] of Object.entries(users)) {
        for (const query of ['?dryRun=All', '?dryRun=']) {
          const answer = await attempt(`${RECORDS}/${name}${query}`, record, as);
          assert.equal(answer.status, 403, `${who}: ${answer.text}`);
          assert.ok(answer.body.message.includes(`VirtualMachineIdentity "${name}" cannot be ${kind}: `), answer.text);
        }
      }
      assert.deepEqual(await api.ok('GET', `${RECORDS}/${name}`), record);
    });
  }
}

test('the refusal says what to do instead', async () => {
  const { name } = (await createRecord()).metadata;
  const message = async (answer: Promise<TestResponse>) => {
    const { message } = (await answer).body;
    return message.slice(message.indexOf('denied request: ') + 'denied request: '.length);
  };
  assert.equal(
    await message(api.call('DELETE', `${RECORDS}/${name}`)),
    `VirtualMachineIdentity "${name}" cannot be deleted: it holds the device addresses of VirtualMachine ${name}; delete the VirtualMachine, and its record is deleted with it`,
  );
  assert.equal(
    await message(api.call('PATCH', `${RECORDS}/${name}`, { body: { spec: { firmware: { serial: 'x' } } } })),
    `VirtualMachineIdentity "${name}" cannot be changed: its spec, status, finalizers and ownerReferences are written by Selfsame only; change VirtualMachine ${name} instead`,
  );
});

const allowed: Record<string, { attempt: Attempt; as?: CallOptions; isOwned?: boolean }> = {
  'a label': { attempt: patch({ metadata: { labels: { team: 'blue' } } }) },
  'an annotation': { attempt: patch({ metadata: { annotations: { note: 'mine' } } }) },
  'the same object again': { attempt: (path, record, as) => api.call('PUT', path, { ...as, body: record }) },
  'a new owner reference by the garbage collector': {
    attempt: writes['remove the owner']!,
    as: builtInAccount('generic-garbage-collector'),
  },
  'a new spec by the VM controller': { attempt: writes['change the spec']!, as: ownAccount('vm-controller') },
  'new devices by the device map': { attempt: writes['empty the devices']!, as: ownAccount('device-map-controller') },
  'a restored status': { attempt: writes['empty the status']!, as: ownAccount('restore-controller') },
  'a delete by the garbage collector': { attempt: deletes['delete']!, as: builtInAccount('generic-garbage-collector') },
  'a delete by the namespace controller': { attempt: deletes['delete']!, as: builtInAccount('namespace-controller') },
  'a delete by a kube-controller-manager without accounts': {
    attempt: deletes['delete']!,
    as: adminUser('system:kube-controller-manager'),
  },
  'a delete of a record that no VM owns': { attempt: deletes['delete']!, isOwned: false },
  'other devices in a record that no VM owns': { attempt: writes['empty the devices']!, isOwned: false },
};

test('allows: a saved status in a record that holds no devices', async () => {
  const { name } = (await createRecord()).metadata;
  const status = `${RECORDS}/${name}/status`;
  await api.ok('PATCH', status, { body: { status: { devices: null } }, ...ownAccount('device-map-controller') });
  const saved = { devices: [{ id: 'disk-data', type: 'disk', device: 'disk' }] };
  assert.equal((await api.call('PATCH', status, { body: { status: saved } })).status, 200);
  assert.equal((await api.call('PATCH', status, { body: { status: { devices: null } } })).status, 403, 'only once');
});

for (const [what, { attempt, as = {}, isOwned = true }] of Object.entries(allowed)) {
  test(`allows: ${what}`, async () => {
    const record = await createRecord({ isOwned });
    const { status, text } = await attempt(`${RECORDS}/${record.metadata.name}?dryRun=`, record, as);
    assert.equal(status, 200, text);
  });
}

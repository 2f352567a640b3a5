/** Snapshots and restores on the whole API: what is refused of them, and what they block meanwhile. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aRestore, aSnapshot, aVm } from '#api/validation/testing/valid-objects.ts';
import { asAccount } from '#operator/testing/operator-plane.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { CallOptions, Loose, TestApi } from '#test/support/test-api.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachines';
const GROUP = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/golden';
const SNAPSHOTS = `${GROUP}/virtualmachinesnapshots`;
const RESTORES = `${GROUP}/virtualmachinerestores`;

let scene: AdmissionScene;
let api: TestApi;

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api } = scene);
});
after(() => scene.stop());

let count = 0;
const nextName = () => `x-${++count}`;
const snapshot = (spec: object = {}): Loose => aSnapshot({ metadata: { name: nextName() }, spec });
const restore = (spec: object = {}): Loose => aRestore({ metadata: { name: nextName() }, spec });

const refusals: Record<string, { path: string; object: () => Loose; message: RegExp }> = {
  'a snapshot of something else': {
    path: SNAPSHOTS,
    object: () => snapshot({ source: { kind: 'VirtualMachineInstance' } }),
    message:
      /^admission webhook "validate-virtualmachinesnapshots\.selfsame\.io" denied the request: spec\.source\.kind: Unsupported value: "VirtualMachineInstance": supported values: "VirtualMachine"$/,
  },
  'a snapshot with an invalid deadline': {
    path: SNAPSHOTS,
    object: () => snapshot({ failureDeadline: '5 minutes' }),
    message: /spec\.failureDeadline: Invalid value: "5 minutes": must be a duration/,
  },
  'a snapshot with an unknown field': {
    path: SNAPSHOTS,
    object: () => snapshot({ source: { namespace: 'blue' } }),
    message: /spec\.source\.namespace: Forbidden: unknown field$/,
  },
  'a snapshot without a source': {
    path: SNAPSHOTS,
    object: () => snapshot({ source: null }),
    message: /spec\.source: Required value/,
  },
  'a restore that patches the name': {
    path: RESTORES,
    object: () => restore({ patches: ['{"op":"replace","path":"/metadata/name","value":"x"}'] }),
    message: /spec\.patches\[0\]: .*path must be in \/metadata\/labels/,
  },
  'a restore that removes the uuid': {
    path: RESTORES,
    object: () => restore({ patches: ['{"op":"remove","path":"/spec/template/spec/domain/firmware/uuid"}'] }),
    message: /removes the firmware uuid/,
  },
  'a restore with an unknown policy': {
    path: RESTORES,
    object: () => restore({ targetReadinessPolicy: 'Hurry' }),
    message: /Unsupported value: "Hurry": supported values: "StopTarget"/,
  },
};

for (const [name, { path, object, message }] of Object.entries(refusals)) {
  test(`refuses ${name}`, async () => {
    const answer = await api.call('POST', path, { body: object() });
    assert.equal(answer.status, 422, answer.text);
    assert.match(answer.body.message, message);
  });
}

test('the spec cannot change; labels and status can', async () => {
  for (const [path, object, change] of [
    [SNAPSHOTS, snapshot({ failureDeadline: '1h' }), { failureDeadline: '2h' }],
    [RESTORES, restore({ target: { name: nextName() } }), { virtualMachineSnapshotName: 'another' }],
  ] as const) {
    const { metadata } = await api.ok('POST', path, { body: object });
    const one = `${path}/${metadata.name}`;
    const answer = await api.call('PATCH', one, { body: { spec: change } });
    assert.equal(answer.status, 422);
    assert.match(answer.body.message, /spec: Forbidden: spec in immutable after creation$/);
    await api.ok('PATCH', one, { body: { metadata: { labels: { a: 'b' } } } });
  }
});

test('one restore at a time for a VM', async () => {
  const target = { name: nextName() };
  const first = await api.ok('POST', RESTORES, { body: restore({ target }) });
  await scene.plane.settle();
  const second = await api.call('POST', RESTORES, { body: restore({ target }) });
  assert.equal(second.status, 422);
  assert.ok(second.body.message.endsWith(`VirtualMachineRestore "${first.metadata.name}" in progress`));
  await api.ok('POST', RESTORES, { body: restore({ target: { name: nextName() } }) });

  const done = { body: { status: { complete: true } }, user: asAccount('restore-controller') };
  await api.ok('PATCH', `${RESTORES}/${first.metadata.name}/status`, done);
  await scene.plane.settle();
  await api.ok('POST', RESTORES, { body: restore({ target }) });
});

/** Creates a VM with this status, as the VM controller writes it. */
async function createVm(status: Loose, runStrategy: string): Promise<string> {
  const name = nextName();
  const made = await api.ok('POST', VMS, { body: aVm({ metadata: { name }, spec: { runStrategy } }) });
  const body = { ...made, status };
  await api.ok('PUT', `${VMS}/${name}/status`, { body, user: asAccount('vm-controller') });
  return `${VMS}/${name}`;
}

const cores = { spec: { template: { spec: { domain: { cpu: { cores: 4 } } } } } };
const volumes = {
  spec: {
    template: {
      spec: {
        volumes: [
          { name: 'root', emptyDisk: { capacity: '1Gi' } },
          { name: 'seed', emptyDisk: { capacity: '1Gi' } },
        ],
      },
    },
  },
};

test('while a snapshot is taken, run state and disks cannot change', async () => {
  const path = await createVm({ snapshotInProgress: 's1' }, 'Always');
  const patch = (body: Loose) => api.call('PATCH', path, { body });
  const stop = await patch({ spec: { runStrategy: 'Halted' } });
  assert.equal(stop.status, 422);
  assert.match(stop.body.message, /Cannot update vm running state until snapshot "s1" completes$/);
  assert.match((await patch(volumes)).body.message, /Cannot update vm disks or volumes until snapshot "s1" completes$/);
  assert.equal((await patch(cores)).status, 200);
  await api.ok('PUT', `${path}/status`, {
    body: { ...(await api.ok('GET', path)), status: {} },
    user: asAccount('vm-controller'),
  });
  assert.equal((await patch({ spec: { runStrategy: 'Halted' } })).status, 200);
});

test('while a VM is restored, only the restore can change it', async () => {
  const path = await createVm({ restoreInProgress: 'r1' }, 'Halted');
  const patch = (body: Loose, options: CallOptions = {}) => api.call('PATCH', path, { body, ...options });
  const start = await patch({ spec: { runStrategy: 'Always' } });
  assert.equal(start.status, 422);
  assert.match(start.body.message, /Cannot update VM runStrategy until restore "r1" completes$/);
  assert.match((await patch(cores)).body.message, /Cannot update VM template until restore "r1" completes$/);
  assert.equal((await patch({ metadata: { labels: { a: 'b' } } })).status, 200);
  const machine = { spec: { template: { spec: { domain: { machine: { type: 'pc-q35-8.2' } } } } } };
  assert.equal((await patch(machine, { user: asAccount('vm-controller') })).status, 200);
  assert.equal((await patch(volumes, { user: asAccount('restore-controller') })).status, 200);
});

test('the accounts of the snapshot controllers have the permissions that they need', async () => {
  const controllers: [account: string, verb: string, group: string, resource: string, subresource?: string][] = [
    ['snapshot-controller', 'create', 'snapshot.kubevirt.io', 'virtualmachinesnapshotcontents'],
    ['snapshot-controller', 'update', 'snapshot.kubevirt.io', 'virtualmachinesnapshots', 'status'],
    ['snapshot-controller', 'update', 'snapshot.kubevirt.io', 'virtualmachinesnapshotcontents', 'finalizers'],
    ['snapshot-controller', 'create', 'snapshot.storage.k8s.io', 'volumesnapshots'],
    ['snapshot-controller', 'get', 'kubevirt.io', 'virtualmachineinstances'],
    ['restore-controller', 'create', 'kubevirt.io', 'virtualmachines'],
    ['restore-controller', 'update', 'identity.selfsame.io', 'virtualmachineidentities', 'status'],
    ['restore-controller', 'delete', '', 'persistentvolumeclaims'],
    ['restore-controller', 'update', 'snapshot.kubevirt.io', 'virtualmachinerestores', 'finalizers'],
    ['volume-snapshot-controller', 'create', 'snapshot.storage.k8s.io', 'volumesnapshotcontents'],
    ['volume-snapshot-controller', 'update', 'snapshot.storage.k8s.io', 'volumesnapshots', 'status'],
    ['storage-controller', 'get', 'snapshot.storage.k8s.io', 'volumesnapshotcontents'],
    ['vm-controller', 'list', 'snapshot.kubevirt.io', 'virtualmachinerestores'],
    ['selfsame-informers', 'watch', 'snapshot.storage.k8s.io', 'volumesnapshotclasses'],
    ['selfsame-informers', 'watch', 'snapshot.storage.k8s.io', 'volumesnapshotcontents'],
    ['selfsame-informers', 'watch', 'snapshot.kubevirt.io', 'virtualmachinesnapshotcontents'],
  ];
  for (const [account, verb, group, resource, subresource] of controllers) {
    assert.equal(await isAllowed(account, verb, group, resource, subresource), true, `${account} ${verb} ${resource}`);
  }
  assert.equal(await isAllowed('snapshot-controller', 'patch', 'kubevirt.io', 'virtualmachines'), false);
  assert.equal(await isAllowed('restore-controller', 'delete', 'kubevirt.io', 'virtualmachines'), false);
  assert.equal(await isAllowed('vm-controller', 'patch', 'snapshot.kubevirt.io', 'virtualmachinesnapshots'), false);
});

async function isAllowed(account: string, verb: string, group: string, resource: string, subresource?: string) {
  const { name: user, groups } = asAccount(account);
  const resourceAttributes = { namespace: 'golden', verb, group, resource, subresource, name: 'db' };
  const spec = { user, groups, resourceAttributes };
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
  return (await api.ok('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body })).status.allowed;
}

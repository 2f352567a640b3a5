/**
 * A VM never loses its firmware uuid or serial, however it is written: a replacement keeps them, patches that remove
 * them are refused. They may be changed.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aSpec, aVm } from '#api/validation/testing/valid-objects.ts';
import { asAccount } from '#operator/testing/operator-plane.ts';
import { startAdmissionScene, type AdmissionScene } from '#test/scenarios/admission-scene.ts';
import type { TestResponse, CallOptions, Loose, TestApi } from '#test/support/test-api.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/golden/virtualmachines';
const POLICIES = '/apis/admissionregistration.k8s.io/v1';
const UUID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const OTHER = 'aaaaaaaa-b3ef-428c-8861-06e72d69f223';
const SERIAL = 'A-1';
const AT = '/spec/template/spec/domain/firmware';

let scene: AdmissionScene;
let api: TestApi;

before(async () => {
  scene = await startAdmissionScene('golden');
  ({ api } = scene);
});
after(() => scene.stop());

let count = 0;
const nextName = () => `vm-${++count}`;
const firmware = (value: unknown) => ({ spec: { template: { spec: { domain: { firmware: value } } } } });
const manifest = (name: string, patch: object = {}): Loose => aVm({ ...patch, metadata: { name } });
/** A manifest as users write it, without identity. */
const manifestWithoutIdentity = (name: string): Loose => manifest(name, firmware(null));
const identity = (vm: Loose): Loose => vm.spec.template.spec.domain.firmware;

const json = (...operations: Loose[]): CallOptions => ({
  body: operations,
  contentType: 'application/json-patch+json',
});
const merge = (body: Loose): CallOptions => ({ body });

const refusal = (name: string, field: string, value: string) =>
  `the firmware ${field} of VirtualMachine "${name}" cannot be removed: it is "${value}"; keep it in spec.template.spec.domain.firmware.${field}, or set another one there`;

type Write = (path: string, vm: Loose) => Promise<TestResponse>;
const patch =
  (options: CallOptions): Write =>
  (path) =>
    api.call('PATCH', path, options);
/** Replaces the whole object with a changed copy. */
const replace =
  (change: (vm: Loose) => void): Write =>
  (path, vm) => {
    const body = structuredClone(vm);
    change(body);
    return api.call('PUT', path, { body });
  };

const removals: Record<string, { write: Write; field?: 'uuid' | 'serial' }> = {
  'replace with an empty uuid': { write: replace((vm) => (identity(vm).uuid = '')) },
  'replace with an empty serial': { write: replace((vm) => (identity(vm).serial = '')), field: 'serial' },
  'merge patch to null': { write: patch(merge(firmware({ uuid: null }))) },
  'merge patch to an empty text': { write: patch(merge(firmware({ uuid: '' }))) },
  'merge patch of firmware to null': { write: patch(merge(firmware(null))) },
  'JSON patch that removes the uuid': { write: patch(json({ op: 'remove', path: `${AT}/uuid` })) },
  'JSON patch that empties the uuid': { write: patch(json({ op: 'replace', path: `${AT}/uuid`, value: '' })) },
  'JSON patch that sets it to null': { write: patch(json({ op: 'replace', path: `${AT}/uuid`, value: null })) },
  'JSON patch that removes firmware': { write: patch(json({ op: 'remove', path: AT })) },
  'JSON patch that replaces firmware': {
    write: patch(json({ op: 'replace', path: AT, value: { serial: SERIAL, bootloader: { bios: {} } } })),
  },
  'JSON patch that moves it away': {
    write: patch(json({ op: 'move', from: `${AT}/uuid`, path: `${AT}/serial` })),
  },
  'JSON patch that replaces the domain': {
    write: patch(
      json({ op: 'replace', path: '/spec/template/spec/domain', value: { ...aSpec().domain, firmware: undefined } }),
    ),
  },
  'merge patch of the serial to null': { write: patch(merge(firmware({ serial: null }))), field: 'serial' },
  'merge patch of the serial to an empty text': { write: patch(merge(firmware({ serial: '' }))), field: 'serial' },
  'JSON patch that removes the serial': { write: patch(json({ op: 'remove', path: `${AT}/serial` })), field: 'serial' },
  'our own VM controller': {
    write: (path) => api.call('PATCH', path, { ...merge(firmware({ uuid: null })), user: asAccount('vm-controller') }),
  },
};

for (const [route, { write, field = 'uuid' }] of Object.entries(removals)) {
  test(`refuses: ${route}`, async () => {
    const name = nextName();
    const path = `${VMS}/${name}`;
    const vm = await api.ok('POST', VMS, { body: manifest(name) });
    for (const at of [`${path}?dryRun=All`, path]) {
      const answer = await write(at, vm);
      assert.equal(answer.status, 422, answer.text);
      assert.equal(answer.body.reason, 'Invalid');
      assert.match(answer.body.message, /denied request: /);
      const message = answer.body.message.slice(answer.body.message.indexOf('denied request: ') + 16);
      assert.equal(message, refusal(name, field, field === 'uuid' ? UUID : SERIAL));
    }
    assert.deepEqual(await api.ok('GET', path), vm);
  });
}

const BOTH = ['uuid and serial', 'were'];

/**
 * Replacements that omit something. An API server drops null before admission, so null is the same as omitting the
 * field.
 */
const kept: Record<string, { write: Write; what: string[] }> = {
  'replace without the uuid': { write: replace((vm) => delete identity(vm).uuid), what: ['uuid', 'was'] },
  'replace with a null uuid': { write: replace((vm) => (identity(vm).uuid = null)), what: ['uuid', 'was'] },
  'replace without the serial': { write: replace((vm) => delete identity(vm).serial), what: ['serial', 'was'] },
  'replace without firmware': { write: replace((vm) => delete vm.spec.template.spec.domain.firmware), what: BOTH },
  'replace with null for firmware': {
    write: replace((vm) => (vm.spec.template.spec.domain.firmware = null)),
    what: BOTH,
  },
  'replace with the original manifest': {
    write: (path, { metadata: { name, resourceVersion } }) => {
      const original = manifestWithoutIdentity(name);
      return api.call('PUT', path, { body: { ...original, metadata: { ...original.metadata, resourceVersion } } });
    },
    what: BOTH,
  },
};

for (const [route, { write, what }] of Object.entries(kept)) {
  test(`keeps uuid and serial: ${route}`, async () => {
    const name = nextName();
    const path = `${VMS}/${name}`;
    const vm = await api.ok('POST', VMS, { body: manifest(name) });
    for (const at of [`${path}?dryRun=All`, path]) {
      const answer = await write(at, vm);
      assert.equal(answer.status, 200, answer.text);
      const [fields, verb] = what;
      // Other VMs of this file have the same uuid, which causes another warning.
      const warned = answer.warnings.filter((text) => !text.includes('is also that of'));
      assert.deepEqual(warned, [
        `the firmware ${fields} of VirtualMachine "${name}" cannot be removed and ${verb} kept`,
      ]);
      assert.deepEqual(identity(answer.body), { uuid: UUID, serial: SERIAL });
    }
    const after = await api.ok('GET', path);
    assert.deepEqual(after.spec, vm.spec);
    assert.equal(after.metadata.generation, vm.metadata.generation);
  });
}

test('a replacement may change other firmware and other fields at once', async () => {
  const name = nextName();
  await api.ok('POST', VMS, { body: manifestWithoutIdentity(name) });
  const vm = await api.ok('GET', `${VMS}/${name}`);
  const { uuid, serial } = identity(vm);
  const { body } = await replace((copy) => {
    copy.spec.template.spec.domain.firmware = { bootloader: { bios: {} } };
    copy.spec.template.spec.domain.cpu.cores = 4;
  })(`${VMS}/${name}`, vm);
  assert.deepEqual(identity(body), { bootloader: { bios: {} }, uuid, serial });
  assert.equal(body.spec.template.spec.domain.cpu.cores, 4);
});

test('replacements are refused while the webhook does not answer', async () => {
  const name = nextName();
  const vm = await api.ok('POST', VMS, { body: manifest(name) });
  const restoreWebhook = scene.loseWebhook();
  const { status, body } = await replace((copy) => delete identity(copy).uuid)(`${VMS}/${name}`, vm);
  restoreWebhook();
  assert.equal(status, 500);
  assert.match(body.message, /failed calling webhook "mutate-virtualmachines.selfsame.io"/);
  assert.deepEqual(await api.ok('GET', `${VMS}/${name}`), vm);
});

const templateRemovals: Record<string, (vm: Loose) => void> = {
  domain: (vm) => delete vm.spec.template.spec.domain,
  "the template's spec": (vm) => delete vm.spec.template.spec,
  'the whole template': (vm) => (vm.spec.template = {}),
};

for (const [what, change] of Object.entries(templateRemovals)) {
  test(`refuses: replace without ${what}`, async () => {
    const name = nextName();
    const vm = await api.ok('POST', VMS, { body: manifest(name) });
    const answer = await replace(change)(`${VMS}/${name}`, vm);
    assert.equal(answer.status, 422, answer.text);
    assert.deepEqual(await api.ok('GET', `${VMS}/${name}`), vm);
  });
}

const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Applies like kubectl: fields that were applied before and are no longer in the manifest become null. */
function apply(name: string, wanted: Loose, gone: Loose = {}): Promise<TestResponse> {
  const annotations = { [APPLIED]: JSON.stringify(wanted) };
  const body = withNulls({ metadata: { annotations }, spec: wanted.spec }, gone);
  return api.call('PATCH', `${VMS}/${name}`, { body });
}

function withNulls(body: Loose, gone: Loose): Loose {
  const nulls = Object.entries(gone).map(([key, value]) => [
    key,
    value === null ? null : withNulls(body[key] ?? {}, value),
  ]);
  return { ...body, ...Object.fromEntries(nulls) };
}

test('repeated apply of the manifest without a uuid keeps the uuid', async () => {
  const name = nextName();
  const vm = await api.ok('POST', VMS, { body: manifestWithoutIdentity(name) });
  for (const cores of [2, 2, 4]) {
    const wanted = manifestWithoutIdentity(name);
    wanted.spec.template.spec.domain.cpu.cores = cores;
    const answer = await apply(name, wanted);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(identity(answer.body), identity(vm));
    assert.equal(answer.body.spec.template.spec.domain.cpu.cores, cores);
  }
});

test('apply without the uuid by a user who applied it before keeps it', async () => {
  const name = nextName();
  await api.ok('POST', VMS, { body: manifest(name) });
  const { body: vm } = await apply(name, manifest(name));
  for (const removal of [firmware(null), firmware({ uuid: null })]) {
    const answer = await apply(name, manifestWithoutIdentity(name), removal);
    assert.equal(answer.status, 422, answer.text);
    assert.ok(answer.body.message.endsWith(refusal(name, 'uuid', UUID)), answer.body.message);
  }
  assert.deepEqual(await api.ok('GET', `${VMS}/${name}`), vm);
});

const applyServerSide = (name: string, body: Loose, manager = 'gitops'): Promise<TestResponse> =>
  api.call('PATCH', `${VMS}/${name}?fieldManager=${manager}`, {
    body: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', ...body },
    contentType: 'application/apply-patch+yaml',
  });

test('repeated server-side apply of the manifest without a uuid changes nothing', async () => {
  const name = nextName();
  const { body: vm, status } = await applyServerSide(name, manifestWithoutIdentity(name));
  assert.equal(status, 201);
  assert.ok(identity(vm).uuid);
  for (let time = 0; time < 3; time++) {
    const answer = await applyServerSide(name, manifestWithoutIdentity(name));
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.warnings, []);
    assert.deepEqual(answer.body, vm);
  }
});

test('server-side apply without the uuid by the manager that applied it before keeps it', async () => {
  const name = nextName();
  const { body: vm } = await applyServerSide(name, manifest(name));
  for (const body of [manifestWithoutIdentity(name), manifest(name, firmware({ uuid: '' }))]) {
    const answer = await applyServerSide(name, body);
    assert.equal(answer.status, 422, answer.text);
    assert.ok(answer.body.message.endsWith(refusal(name, 'uuid', UUID)), answer.body.message);
  }
  assert.deepEqual(await api.ok('GET', `${VMS}/${name}`), vm);
});

const allowed: Record<string, { write: Write; want: Loose }> = {
  'another uuid by merge patch': {
    write: patch(merge(firmware({ uuid: OTHER }))),
    want: { uuid: OTHER, serial: SERIAL },
  },
  'another uuid by JSON patch': {
    write: patch(json({ op: 'replace', path: `${AT}/uuid`, value: OTHER })),
    want: { uuid: OTHER, serial: SERIAL },
  },
  'another serial by replace': {
    write: replace((vm) => (identity(vm).serial = 'B-2')),
    want: { uuid: UUID, serial: 'B-2' },
  },
  'a firmware object with another uuid and serial': {
    write: patch(json({ op: 'replace', path: AT, value: { uuid: OTHER, serial: 'B-2' } })),
    want: { uuid: OTHER, serial: 'B-2' },
  },
  'another field': {
    write: patch(merge({ spec: { runStrategy: 'Halted' } })),
    want: { uuid: UUID, serial: SERIAL },
  },
};

for (const [change, { write, want }] of Object.entries(allowed)) {
  test(`allows: ${change}`, async () => {
    const name = nextName();
    const vm = await api.ok('POST', VMS, { body: manifest(name) });
    const answer = await write(`${VMS}/${name}`, vm);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(identity(await api.ok('GET', `${VMS}/${name}`)), want);
  });
}

/** Stores a VM as if it had been created before the webhook was installed. */
async function storeWithoutUuid(name: string): Promise<Loose> {
  const path = `${POLICIES}/mutatingwebhookconfigurations/selfsame`;
  await scene.plane.stop();
  const configuration = await api.ok('GET', path);
  await api.ok('DELETE', path);
  await api.settle();
  const vm = await api.ok('POST', VMS, { body: manifestWithoutIdentity(name) });
  const { resourceVersion: _v, uid: _u, ...metadata } = configuration.metadata;
  await api.ok('POST', `${POLICIES}/mutatingwebhookconfigurations`, { body: { ...configuration, metadata } });
  await api.settle();
  return vm;
}

test('a VM without a uuid may be changed, and get one', async () => {
  const name = nextName();
  const vm = await storeWithoutUuid(name);
  assert.equal(identity(vm), undefined);
  const path = `${VMS}/${name}`;
  const labelled = await api.ok('PATCH', path, merge({ metadata: { labels: { a: 'b' } } }));
  assert.equal(identity(labelled), undefined);
  const bios = await api.ok('PATCH', path, merge(firmware({ bootloader: { bios: {} } })));
  assert.deepEqual(identity(bios), { bootloader: { bios: {} } });
  await api.ok('PATCH', path, merge(firmware({ uuid: UUID })));
  // From now on it has a uuid.
  assert.equal((await api.call('PATCH', path, merge(firmware({ uuid: null })))).status, 422);
});

test('a VM with a uuid may be deleted, and its finalizers removed', async () => {
  const name = nextName();
  const body = manifest(name);
  body.metadata.finalizers = ['example.com/a'];
  await api.ok('POST', VMS, { body });
  await api.ok('DELETE', `${VMS}/${name}`);
  await api.ok('PATCH', `${VMS}/${name}`, merge({ metadata: { finalizers: null } }));
  assert.equal((await api.call('GET', `${VMS}/${name}`)).status, 404);
});

const malformed: Record<string, string> = {
  nope: 'contains "n", which is not a hexadecimal digit',
  '5d307ca9-b3ef-428c-8861-06e72d69f22': 'has 31 hexadecimal digits instead of 32',
  '{5d307ca9-b3ef-428c-8861-06e72d69f223}': 'contains "{", which is not a hexadecimal digit',
  '5d307ca9b3ef428c886106e72d69f223': 'has its dashes in the wrong places',
  '00000000-0000-0000-0000-000000000000': 'is the nil UUID',
};

for (const [uuid, wrong] of Object.entries(malformed)) {
  test(`refuses the uuid ${uuid}, which ${wrong}`, async () => {
    const name = nextName();
    const want = `spec.template.spec.domain.firmware.uuid: Invalid value: "${uuid}": must be a UUID as of RFC 4122, other than the nil UUID (e.g. ${UUID}), but ${wrong}`;
    const created = await api.call('POST', VMS, { body: manifest(name, firmware({ uuid })) });
    assert.equal(created.status, 422);
    assert.ok(created.body.message.endsWith(want), created.body.message);
    await api.ok('POST', VMS, { body: manifest(name) });
    const changed = await api.call('PATCH', `${VMS}/${name}`, merge(firmware({ uuid })));
    assert.equal(changed.status, 422);
    assert.ok(changed.body.message.endsWith(want), changed.body.message);
  });
}

test('the policy has no type errors', async () => {
  const { status } = await api.ok('GET', `${POLICIES}/validatingadmissionpolicies/selfsame-firmware-identity`);
  assert.deepEqual(status.typeChecking, {});
});

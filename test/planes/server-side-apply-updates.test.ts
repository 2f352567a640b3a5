/**
 * Field ownership without apply: after create, update and patch, of the status, across versions, and during the change
 * from client-side apply.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { Loose } from '#test/support/test-api.ts';
import {
  CONFIG_MAP,
  configMap,
  GADGET,
  GADGET_V2,
  gadget,
  GADGETS,
  gadgets,
  owners,
  startApplyScene,
  type ApplyScene,
} from '#test/scenarios/apply-scene.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

let api: ApplyScene;
const clock = new FakeClock();
before(async () => void (api = await startApplyScene({ clock })));
after(() => api.stop());
beforeEach(async () => {
  await api.call('DELETE', CONFIG_MAP);
  await api.call('DELETE', GADGET);
});

const create = (manager: string, url: string, body: Loose) =>
  api.ok('POST', `${url.slice(0, url.lastIndexOf('/'))}?fieldManager=${manager}`, { body });

test('the creator owns all that was sent, defaults included, but no fields that the server sets', async () => {
  const made = await create('alice', GADGET, gadget({ color: 'red' }, { status: { phase: 'x' } }));
  assert.deepEqual(owners(made), { 'alice Update': ['.spec', '.spec.color', '.spec.mode'] });
});

test('the manager is the name in the User-Agent if the request names none', async () => {
  const made = await api.ok('POST', GADGETS, { body: gadget({ color: 'red' }) });
  assert.equal(made.metadata.managedFields[0].manager, 'test');
});

test('in built-in kinds the labels are owned one by one, and as a whole by their creator', async () => {
  const made = await create('alice', CONFIG_MAP, configMap({ k: 'v' }, { labels: { app: 'x' } }));
  assert.deepEqual(owners(made), { 'alice Update': ['.data', '.data.k', '.metadata.labels', '.metadata.labels.app'] });
});

test('write-only fields are owned at the field in which they are stored', async () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'b' } };
  const url = '/api/v1/namespaces/ns/secrets/s';
  const made = await create('alice', url, secret);
  assert.deepEqual(owners(made), { 'alice Update': ['.data', '.type', '.data.a'] });
  const changed = await api.merge('bob', url, { stringData: { c: 'd' } });
  assert.deepEqual(owners(changed)['bob Update'], ['.data.c']);
});

test('an update takes ownership of what it changes and nothing else', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red', size: 1 }));
  const changed = await api.merge('carol', GADGET, { spec: { size: 2 }, metadata: { labels: { a: 'b' } } });
  assert.deepEqual(owners(changed), {
    'alice Apply': ['.spec.color'],
    'carol Update': ['.metadata.labels', '.metadata.labels.a', '.spec.size'],
  });
  const { status, body } = await api.apply('alice', GADGET, gadget({ color: 'red', size: 1 }));
  assert.equal(status, 409);
  assert.equal(body.message, 'Apply failed with 1 conflict: conflict with "carol" using golden.local/v1: .spec.size');
});

test('the same manager is a separate one when it applies', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v', l: 'w' }));
  const changed = await api.merge('alice', CONFIG_MAP, { data: { k: 'x' } });
  assert.deepEqual(owners(changed), { 'alice Apply': ['.data.l'], 'alice Update': ['.data.k'] });
});

test('an update that changes nothing writes nothing, for any manager', async () => {
  const made = await create('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const same = await api.ok('PUT', `${CONFIG_MAP}?fieldManager=bob`, { body: made });
  assert.deepEqual(same, made);
});

test('an update without managedFields, or with unreadable ones, keeps those that are stored', async () => {
  const made = await create('alice', CONFIG_MAP, configMap({ k: 'v' }));
  for (const managedFields of [
    undefined,
    [{ manager: 'x' }],
    [{ ...made.metadata.managedFields[0], fieldsV1: { x: {} } }],
  ]) {
    const body = { ...made, metadata: { ...made.metadata, managedFields } };
    assert.deepEqual(await api.ok('PUT', CONFIG_MAP, { body }), made);
  }
});

for (const managedFields of [[], [{}]]) {
  test(`${JSON.stringify(managedFields)} ends the tracking until the next apply`, async () => {
    await create('alice', CONFIG_MAP, configMap({ k: 'v' }));
    const reset = await api.merge('alice', CONFIG_MAP, { metadata: { managedFields } });
    assert.equal(reset.metadata.managedFields, undefined);
    const changed = await api.merge('alice', CONFIG_MAP, { data: { k: 'w' } });
    assert.equal(changed.metadata.managedFields, undefined);
    const { body } = await api.apply('bob', CONFIG_MAP, configMap({ k: 'x' }));
    assert.equal(body.message, 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k');
    const shared = await api.applyOk('bob', CONFIG_MAP, configMap({ k: 'w', l: 'm' }));
    assert.deepEqual(owners(shared), {
      'bob Apply': ['.data.k', '.data.l'],
      'before-first-apply Update': ['.data', '.data.k'],
    });
  });
}

test('managedFields may be edited by hand, as kubectl does when it changes to server-side apply', async () => {
  const made = await create('kubectl-client-side-apply', CONFIG_MAP, configMap({ k: 'v' }));
  const entry = { ...made.metadata.managedFields[0], manager: 'kubectl', operation: 'Apply' };
  const body = [{ op: 'replace', path: '/metadata/managedFields', value: [entry] }];
  const contentType = 'application/json-patch+json';
  const edited = await api.ok('PATCH', CONFIG_MAP, { body, contentType });
  assert.deepEqual(owners(edited), { 'kubectl Apply': ['.data', '.data.k'] });
});

const patches: Record<string, { type: string; body: Loose }> = {
  'a JSON patch': { type: 'json-patch', body: [{ op: 'replace', path: '/data/k', value: 'w' }] },
  'a JSON patch that tests the owners first': {
    type: 'json-patch',
    body: [
      { op: 'test', path: '/metadata/managedFields/0/manager', value: 'alice' },
      { op: 'replace', path: '/data/k', value: 'w' },
    ],
  },
  'a merge patch': { type: 'merge-patch', body: { data: { k: 'w' } } },
  'a strategic merge patch': { type: 'strategic-merge-patch', body: { data: { k: 'w' } } },
};

for (const [what, { type, body }] of Object.entries(patches)) {
  test(`${what} takes ownership of what it changes`, async () => {
    await create('alice', CONFIG_MAP, configMap({ k: 'v', l: 'v' }));
    const contentType = `application/${type}+json`;
    const patched = await api.ok('PATCH', `${CONFIG_MAP}?fieldManager=bob`, { body, contentType });
    assert.deepEqual(owners(patched), { 'alice Update': ['.data', '.data.l'], 'bob Update': ['.data.k'] });
    assert.deepEqual(await api.ok('GET', CONFIG_MAP), patched);
  });
}

test('an object that is too large with its managedFields is stored without them', async () => {
  const data = Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`${'k'.repeat(60)}${i}`, 'v'.repeat(60)]));
  const made = await create('alice', CONFIG_MAP, configMap(data));
  assert.equal(made.metadata.managedFields, undefined);
  assert.equal(Object.keys(made.data).length, 9000);
});

test('beyond ten managers of updates, the oldest are merged into one', async () => {
  await create('m0', CONFIG_MAP, configMap({ k0: 'v' }));
  let object: Loose;
  for (let i = 1; i <= 12; i++) {
    await clock.advance(60_000);
    object = await api.merge(`m${i}`, CONFIG_MAP, { data: { [`k${i}`]: 'v' } });
  }
  const owned = owners(object);
  assert.deepEqual(Object.keys(owned), [
    'ancient-changes Update',
    ...[4, 5, 6, 7, 8, 9, 10, 11, 12].map((i) => `m${i} Update`),
  ]);
  assert.deepEqual(owned['ancient-changes Update'], ['.data', '.data.k0', '.data.k1', '.data.k2', '.data.k3']);
});

test('the time of an entry is that of its last change', async () => {
  const made = await create('alice', CONFIG_MAP, configMap({ k: 'v' }));
  await clock.advance(3_600_000);
  const other = await api.merge('bob', CONFIG_MAP, { data: { l: 'v' } });
  await clock.advance(3_600_000);
  const repeated = await api.merge('alice', CONFIG_MAP, { data: { k: 'w' } });
  const times = (object: Loose) => object.metadata.managedFields.map((entry: Loose) => [entry.manager, entry.time]);
  assert.deepEqual(times(other)[0], times(made)[0]);
  assert.deepEqual(
    times(repeated).map(([manager]: [string]) => manager),
    ['bob', 'alice'],
  );
  assert.notEqual(times(repeated)[1][1], times(made)[0][1]);
});

test('the status is owned by the manager that writes it through its subresource', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red' }, { status: { phase: 'ignored' } }));
  const updated = await api.merge('controller', `${GADGET}/status`, {
    spec: { color: 'blue' },
    status: { phase: 'a' },
  });
  assert.equal(updated.spec.color, 'red');
  assert.deepEqual(owners(updated), {
    'alice Apply': ['.spec.color'],
    'controller Update status': ['.status', '.status.phase'],
  });
  const clash = await api.apply('bob', `${GADGET}/status`, gadget(undefined, { status: { phase: 'b' } }));
  assert.equal(
    clash.body.message,
    'Apply failed with 1 conflict: conflict with "controller" with subresource "status" using golden.local/v1: .status.phase',
  );
  const more = gadget({ color: 'blue' }, { status: { replicas: 1 } });
  const applied = await api.applyOk('bob', `${GADGET}/status`, more);
  assert.deepEqual([applied.spec.color, applied.status], ['red', { phase: 'a', replicas: 1 }]);
  assert.deepEqual(owners(applied)['bob Apply status'], ['.status.replicas']);
  const less = await api.applyOk('bob', `${GADGET}/status`, gadget(undefined));
  assert.deepEqual(less.status, { phase: 'a' });
});

test('a write of the scale subresource owns the replicas', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red', replicas: 1 }));
  await api.merge('hpa', `${GADGET}/scale`, { spec: { replicas: 3 } });
  const scaled = await api.ok('GET', GADGET);
  assert.deepEqual(owners(scaled), { 'alice Apply': ['.spec.color'], 'hpa Update scale': ['.spec.replicas'] });
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'a' }, spec: { replicas: 4 } };
  const { status, body } = await api.apply('bob', `${GADGET}/scale`, scale);
  assert.equal(status, 409);
  assert.match(body.message, /conflict with "hpa" with subresource "scale" using golden.local\/v1: .spec.replicas/);
  const taken = await api.applyOk('bob', `${GADGET}/scale`, scale, 'force=true');
  assert.equal(taken.spec.replicas, 4);
  assert.deepEqual(owners(await api.ok('GET', GADGET)), {
    'alice Apply': ['.spec.color'],
    'bob Apply scale': ['.spec.replicas'],
  });
});

test('an applier is the same in another version, an updater is not', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red', size: 1 }));
  await api.merge('carol', GADGET, { spec: { replicas: 1 } });
  await api.merge('carol', GADGET_V2, { spec: { replicas: 2, options: { a: 'b' } } });
  const object = await api.applyOk('alice', GADGET_V2, gadget({ color: 'blue' }, {}, 'v2'));
  assert.deepEqual(object.spec, { color: 'blue', replicas: 2, options: { a: 'b' }, mode: 'auto' });
  const entries = object.metadata.managedFields.map((entry: Loose) => [
    entry.manager,
    entry.operation,
    entry.apiVersion,
  ]);
  assert.deepEqual(entries, [
    ['alice', 'Apply', 'golden.local/v2'],
    ['carol', 'Update', 'golden.local/v2'],
  ]);
});

test('entries of a version that is no longer served are removed', async () => {
  await api.merge('carol', (await create('bob', GADGET_V2, gadget({ size: 1 }, {}, 'v2'))) && GADGET_V2, {
    spec: { color: 'red' },
  });
  const [v1, v2] = gadgets.spec.versions;
  const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';
  await api.merge('x', url, { spec: { versions: [v1, { ...v2, served: false }] } });
  await api.settle();
  const object = await api.applyOk('alice', GADGET, gadget({ color: 'blue' }));
  await api.merge('x', url, { spec: { versions: [v1, v2] } });
  await api.settle();
  assert.deepEqual(owners(object), { 'alice Apply': ['.spec.color'] });
});

test('owners of items of a list that became atomic own the whole list', async () => {
  await api.applyOk('alice', GADGET, gadget({ set: ['a'], options: { a: '1' } }));
  const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';
  const versions = structuredClone(gadgets.spec.versions) as Loose[];
  for (const { schema } of versions) {
    const { set, options } = schema.openAPIV3Schema.properties.spec.properties;
    set['x-kubernetes-list-type'] = 'atomic';
    options['x-kubernetes-map-type'] = 'atomic';
  }
  await api.merge('x', url, { spec: { versions } });
  await api.settle();
  const { body } = await api.apply('bob', GADGET, gadget({ set: ['b'], options: { a: '1' } }));
  const changed = await api.merge('carol', GADGET, { spec: { set: ['c'] } });
  await api.merge('x', url, { spec: { versions: gadgets.spec.versions } });
  await api.settle();
  assert.equal(body.message, 'Apply failed with 1 conflict: conflict with "alice": .spec.set');
  assert.deepEqual(owners(changed), { 'alice Apply': ['.spec.options'], 'carol Update': ['.spec.set'] });
});

test('an entry that owns nothing is removed', async () => {
  const made = await create('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const empty = { ...made.metadata.managedFields[0], manager: 'bob', fieldsV1: {} };
  const managedFields = [...made.metadata.managedFields, empty];
  const changed = await api.merge('alice', CONFIG_MAP, { metadata: { managedFields } });
  assert.deepEqual(owners(changed), { 'alice Update': ['.data', '.data.k'] });
});

test('objects with a generated name are owned, too', async () => {
  const metadata = { generateName: 'a-' };
  const made = await api.ok('POST', `${GADGETS}?fieldManager=alice`, { body: gadget({ color: 'red' }, { metadata }) });
  assert.deepEqual(owners(made)['alice Update'], ['.spec', '.metadata.generateName', '.spec.color', '.spec.mode']);
  assert.deepEqual(await api.ok('GET', `${GADGETS}/${made.metadata.name}`), made);
});

test('kubectl has no conflicts with its own client-side apply', async () => {
  const manifest = configMap({ k: 'v', l: 'w' });
  const annotated = { annotations: { [LAST_APPLIED]: `${JSON.stringify(manifest)}\n` } };
  await create('kubectl-client-side-apply', CONFIG_MAP, configMap({ k: 'v', l: 'w' }, annotated));
  await api.merge('carol', CONFIG_MAP, { data: { l: 'x' } });
  const other = await api.apply('bob', CONFIG_MAP, configMap({ k: 'new' }));
  assert.match(other.body.message, /conflict with "kubectl-client-side-apply" using v1: .data.k/);
  const response = await api.apply('kubectl', CONFIG_MAP, configMap({ k: 'new', l: 'new' }));
  assert.equal(response.body.message, 'Apply failed with 1 conflict: conflict with "carol" using v1: .data.l');
  const taken = await api.applyOk('kubectl', CONFIG_MAP, configMap({ k: 'new' }));
  assert.deepEqual(taken.data, { k: 'new', l: 'x' });
  assert.deepEqual(owners(taken)['kubectl Apply'], ['.data.k']);
  assert.equal(
    taken.metadata.annotations[LAST_APPLIED],
    '{"apiVersion":"v1","data":{"k":"new"},"kind":"ConfigMap","metadata":{"name":"a"}}\n',
  );
});

/** CustomResourceDefinitions from creation to deletion, and their objects in several versions. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aGadget, gadgetCrd, GADGETS, installCrd, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi, type WatchProbe } from '#test/support/test-api.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
let api: TestApi;

before(async () => {
  api = await startTestApi();
});
after(() => api.stop());

function condition(crd: Loose, type: string): Loose {
  return crd.status.conditions.find((candidate: Loose) => candidate.type === type);
}

async function awaitObject(
  watch: WatchProbe,
  fits: (event: { type: string; object: Loose }) => boolean,
): Promise<Loose> {
  for (let seen = 1; ; seen++) {
    const event = (await watch.awaitEvents(seen))[seen - 1]!;
    if (fits(event)) return event.object;
  }
}

test('a definition is established and appears in discovery', async () => {
  await installGadgets(api);
  const crd = await api.ok('GET', `${CRDS}/gadgets.golden.local`);
  assert.deepEqual(
    [condition(crd, 'NamesAccepted').reason, condition(crd, 'Established').reason],
    ['NoConflicts', 'InitialNamesAccepted'],
  );
  assert.deepEqual(crd.status.storedVersions, ['v1']);
  assert.deepEqual(crd.status.acceptedNames, {
    plural: 'gadgets',
    singular: 'gadget',
    shortNames: ['gd'],
    kind: 'Gadget',
    listKind: 'GadgetList',
    categories: ['all'],
  });
  const { resources } = await api.ok('GET', '/apis/golden.local/v1');
  assert.deepEqual(
    resources.map((resource: Loose) => resource.name),
    ['gadgets', 'gadgets/status'],
  );
});

test('a second definition cannot take names that are in use', async () => {
  const crd = gadgetCrd();
  crd.metadata.name = 'gizmos.golden.local';
  crd.spec.names = { plural: 'gizmos', singular: 'gizmo', kind: 'Gizmo', shortNames: ['gd'] };
  const watch = await api.watch(`${CRDS}?watch=1&fieldSelector=metadata.name=gizmos.golden.local`);
  await api.ok('POST', CRDS, { body: crd });
  const judged = await awaitObject(watch, ({ object }) => condition(object, 'NamesAccepted') !== undefined);
  assert.deepEqual(
    [condition(judged, 'NamesAccepted').status, condition(judged, 'NamesAccepted').message],
    ['False', '"gd" is already in use'],
  );
  assert.equal(condition(judged, 'Established').status, 'False');
  assert.equal((await api.call('GET', '/apis/golden.local/v1/gizmos')).status, 404);
  await api.ok('PATCH', `${CRDS}/gizmos.golden.local`, { body: { spec: { names: { shortNames: ['gz'] } } } });
  await awaitObject(watch, ({ object }) => condition(object, 'Established')?.status === 'True');
  watch.stop();
  assert.deepEqual((await api.ok('GET', '/apis/golden.local/v1/gizmos')).items, []);
});

test('several served versions are views of one object', async () => {
  const crd = gadgetCrd();
  crd.metadata.name = 'wheels.golden.local';
  crd.spec.names = { plural: 'wheels', singular: 'wheel', kind: 'Wheel' };
  const [v1] = crd.spec.versions;
  crd.spec.versions = [v1, { ...structuredClone(v1), name: 'v1beta1', storage: false, deprecated: true }];
  await installCrd(api, crd);
  const url = (version: string) => `/apis/golden.local/${version}/namespaces/golden/wheels`;
  const wheel = { ...aGadget('w'), apiVersion: 'golden.local/v1beta1', kind: 'Wheel' };
  const created = await api.call('POST', url('v1beta1'), { body: wheel });
  assert.deepEqual([created.status, created.body.apiVersion], [201, 'golden.local/v1beta1']);
  assert.deepEqual(created.warnings, ['golden.local/v1beta1 Wheel is deprecated']);
  assert.equal((await api.ok('GET', `${url('v1')}/w`)).apiVersion, 'golden.local/v1');
  await api.ok('PATCH', `${url('v1beta1')}/w`, { body: { spec: { size: 9 } } });
  const watch = await api.watch(`${url('v1beta1')}?watch=1`);
  assert.equal((await watch.awaitEvents(1))[0]!.object.apiVersion, 'golden.local/v1beta1');
  watch.stop();
  const list = await api.ok('GET', url('v1'));
  assert.deepEqual([list.items[0].apiVersion, list.items[0].spec.size], ['golden.local/v1', 9]);
});

test('a write through one version must match the storage version, also if that is not served', async () => {
  const crd = gadgetCrd();
  crd.metadata.name = 'levers.golden.local';
  crd.spec.names = { plural: 'levers', singular: 'lever', kind: 'Lever' };
  const [v1] = crd.spec.versions;
  const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const loose = { type: 'object', properties: { spec: free, status: free } };
  crd.spec.versions = [v1, { name: 'v0', served: true, storage: false, schema: { openAPIV3Schema: loose } }];
  await installCrd(api, crd);
  const url = (version: string) => `/apis/golden.local/${version}/namespaces/golden/levers`;
  const lever = { ...aGadget('l', { size: 2, anything: 'goes' }), apiVersion: 'golden.local/v0', kind: 'Lever' };
  const want = { size: 2, mode: 'auto' };

  const created = await api.ok('POST', url('v0'), { body: lever });
  assert.deepEqual([created.apiVersion, created.spec], ['golden.local/v0', want]);
  for (const version of ['v0', 'v1']) {
    const read = await api.ok('GET', `${url(version)}/l`);
    assert.deepEqual([read.apiVersion, read.spec], [`golden.local/${version}`, want]);
  }
  const patched = await api.ok('PATCH', `${url('v0')}/l`, { body: { spec: { size: 3, more: 1, mode: null } } });
  assert.deepEqual([patched.apiVersion, patched.spec], ['golden.local/v0', { size: 3, mode: 'auto' }]);

  await api.ok('PATCH', `${CRDS}/levers.golden.local`, {
    contentType: 'application/json-patch+json',
    body: [{ op: 'replace', path: '/spec/versions/0/served', value: false }],
  });
  assert.equal((await api.call('GET', `${url('v1')}/l`)).status, 404);
  const held = { metadata: { finalizers: ['golden.local/hold'] }, spec: { other: 1 } };
  assert.deepEqual((await api.ok('PATCH', `${url('v0')}/l`, { body: held })).spec, { size: 3, mode: 'auto' });
  const deleted = await api.ok('DELETE', `${url('v0')}/l`);
  assert.deepEqual([deleted.apiVersion, deleted.kind], ['golden.local/v0', 'Lever']);
  assert.equal(deleted.metadata.resourceVersion, String(api.store.revision));
});

for (const [name, spoil, message] of [
  [
    'a selectable field whose path cannot be compiled',
    (version) => (version.selectableFields = [{ jsonPath: '.spec.color[' }]),
    /spec\.versions\[0\]\.selectableFields\[0\]\.jsonPath: Invalid value: "\.spec\.color\["/,
  ],
  [
    'a version without a schema',
    (version) => delete version.schema,
    /spec\.versions\[0\]\.schema\.openAPIV3Schema: Required value: schemas are required/,
  ],
] as [string, (version: Loose) => unknown, RegExp][]) {
  test(`refuses a definition with ${name}`, async () => {
    const crd = gadgetCrd();
    crd.metadata.name = 'broken.golden.local';
    crd.spec.names = { plural: 'broken', singular: 'broken', kind: 'Broken' };
    spoil(crd.spec.versions[0]);
    const { status, body } = await api.call('POST', CRDS, { body: crd });
    assert.equal(status, 422);
    assert.match(body.message, message);
    assert.equal((await api.call('GET', `${CRDS}/broken.golden.local`)).status, 404);
  });
}

test('a changed schema applies to the next write', async () => {
  await api.ok('POST', GADGETS, { body: aGadget('before', { size: 9 }) });
  await api.ok('PATCH', `${CRDS}/gadgets.golden.local`, {
    contentType: 'application/json-patch+json',
    body: [
      {
        op: 'replace',
        path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum',
        value: 5,
      },
    ],
  });
  assert.equal((await api.call('POST', GADGETS, { body: aGadget('after', { size: 9 }) })).status, 422);
  assert.equal((await api.ok('GET', `${GADGETS}/before`)).spec.size, 9);
});

test('open watches of a kind end when its definition changes, not when only its status does', async () => {
  const watch = await api.watch(`${GADGETS}?watch=1`);
  await api.ok('PATCH', `${CRDS}/gadgets.golden.local`, { body: { metadata: { labels: { touched: 'yes' } } } });
  await api.ok('POST', GADGETS, { body: aGadget('still-watched', { size: 1 }) });
  await awaitObject(watch, ({ object }) => object.metadata.name === 'still-watched');
  await api.ok('PATCH', `${CRDS}/gadgets.golden.local`, { body: { spec: { names: { categories: ['all', 'more'] } } } });
  await watch.ended;
});

test('deleting a definition deletes its objects, and waits for their finalizers', async () => {
  await api.ok('POST', GADGETS, { body: aGadget('sticky', { size: 1 }, { finalizers: ['golden.local/hold'] }) });
  const watch = await api.watch(`${CRDS}?watch=1&fieldSelector=metadata.name=gadgets.golden.local`);
  const answer = await api.ok('DELETE', `${CRDS}/gadgets.golden.local`);
  assert.deepEqual(answer.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io']);
  await awaitObject(watch, ({ object }) => condition(object, 'Terminating')?.status === 'True');
  assert.equal((await api.call('POST', GADGETS, { body: aGadget('late', { size: 1 }) })).status, 405);
  const gadgets = await api.watch(`${GADGETS}?watch=1&fieldSelector=metadata.name=sticky`);
  await awaitObject(gadgets, ({ object }) => object.metadata.deletionTimestamp !== undefined);
  gadgets.stop();
  await api.ok('PATCH', `${GADGETS}/sticky`, { body: { metadata: { finalizers: null } } });
  await awaitObject(watch, ({ type }) => type === 'DELETED');
  watch.stop();
  assert.equal((await api.call('GET', GADGETS)).status, 404);
  assert.equal(api.store.count('gadgets.golden.local'), 0);
});

test('the scale subresource maps to fields of the object', async () => {
  const crd = gadgetCrd();
  crd.metadata.name = 'fleets.golden.local';
  crd.spec.names = { plural: 'fleets', singular: 'fleet', kind: 'Fleet' };
  crd.spec.versions[0].subresources.scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  await installCrd(api, crd);
  const url = '/apis/golden.local/v1/namespaces/golden/fleets';
  await api.ok('POST', url, { body: { ...aGadget('f'), kind: 'Fleet' } });
  await api.ok('PATCH', `${url}/f/status`, { body: { status: { size: 2 } } });
  const scale = await api.ok('GET', `${url}/f/scale`);
  assert.deepEqual([scale.kind, scale.spec, scale.status], ['Scale', { replicas: 3 }, { replicas: 2 }]);
  assert.equal(
    (await api.ok('PATCH', `${url}/f/scale?dryRun=All`, { body: { spec: { replicas: 4 } } })).spec.replicas,
    4,
  );
  assert.equal((await api.ok('PATCH', `${url}/f/scale`, { body: { spec: { replicas: 5 } } })).spec.replicas, 5);
  assert.equal((await api.call('PUT', `${url}/f/scale`, { body: scale })).status, 409, 'the Scale is outdated');
  const now = await api.ok('GET', `${url}/f/scale`);
  const refused = async (change: Loose) =>
    (await api.call('PUT', `${url}/f/scale`, { body: { ...now, ...change } })).status;
  assert.equal(await refused({ apiVersion: 'autoscaling/v9' }), 400);
  assert.equal(await refused({ metadata: { ...now.metadata, name: 'other' } }), 400);
  assert.equal(await refused({ metadata: { ...now.metadata, uid: 'other' } }), 409);
  const fleet = await api.ok('GET', `${url}/f`);
  assert.deepEqual([fleet.spec.size, fleet.metadata.generation, fleet.status], [5, 2, { size: 2 }]);
  assert.equal((await api.call('PATCH', `${url}/f/scale`, { body: { spec: { replicas: 11 } } })).status, 422);
});

test('a scale path cannot refer to a prototype', async () => {
  const crd = gadgetCrd();
  crd.metadata.name = 'sneaks.golden.local';
  crd.spec.names = { plural: 'sneaks', singular: 'sneak', kind: 'Sneak' };
  crd.spec.versions[0].subresources.scale = {
    specReplicasPath: '.spec.__proto__.polluted',
    statusReplicasPath: '.status.n',
  };
  const { status, body } = await api.call('POST', CRDS, { body: crd });
  assert.equal(status, 422);
  assert.match(body.message, /specReplicasPath: Invalid value: ".spec.__proto__.polluted": must not name __proto__/);
});

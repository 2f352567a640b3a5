/** Two managers on plain fields: ownership, conflicts and force, removal, and valid configurations. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { MALLORY, type Loose } from '#test/support/test-api.ts';
import {
  CONFIG_MAP,
  configMap,
  GADGET,
  gadget,
  owners,
  startApplyScene,
  type ApplyScene,
} from '#test/scenarios/apply-scene.ts';

let api: ApplyScene;
before(async () => void (api = await startApplyScene()));
after(() => api.stop());
beforeEach(async () => {
  await api.call('DELETE', CONFIG_MAP);
  await api.call('DELETE', GADGET);
});

test('an apply creates the object; defaults have no owner', async () => {
  const { status, body } = await api.apply('alice', GADGET, gadget({ color: 'red', size: 3 }, {}));
  assert.equal(status, 201);
  assert.deepEqual(body.spec, { color: 'red', size: 3, mode: 'auto' });
  assert.deepEqual(owners(body), { 'alice Apply': ['.spec.color', '.spec.size'] });
  assert.equal(body.metadata.managedFields[0].apiVersion, 'golden.local/v1');
  assert.equal(body.metadata.managedFields[0].time, body.metadata.creationTimestamp);
});

test('the configuration may be YAML', async () => {
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {app: x}\ndata:\n  k: v\n';
  const made = await api.applyOk('alice', CONFIG_MAP, yaml);
  assert.deepEqual(owners(made), { 'alice Apply': ['.data.k', '.metadata.labels.app'] });
});

test('a manager that applies the same value shares the field', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const shared = await api.applyOk('bob', CONFIG_MAP, configMap({ k: 'v', l: 'w' }));
  assert.deepEqual(owners(shared), { 'alice Apply': ['.data.k'], 'bob Apply': ['.data.k', '.data.l'] });
});

test('a different value is a conflict that names field and manager', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const { status, body } = await api.apply('bob', CONFIG_MAP, configMap({ k: 'w' }));
  assert.equal(status, 409);
  assert.deepEqual(body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Apply failed with 1 conflict: conflict with "alice": .data.k',
    reason: 'Conflict',
    details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.data.k' }] },
    code: 409,
  });
});

test('several conflicts are reported by manager', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red', size: 1 }));
  await api.merge('carol', GADGET, { spec: { replicas: 1 } });
  await api.merge('dave', `${GADGET}/scale`, { spec: { replicas: 2 } });
  const { body } = await api.apply('bob', GADGET, gadget({ color: 'blue', size: 2, replicas: 3 }));
  assert.equal(
    body.message,
    [
      'Apply failed with 3 conflicts: conflicts with "alice":',
      '- .spec.color',
      '- .spec.size',
      'conflicts with "dave" with subresource "scale" using golden.local/v1:',
      '- .spec.replicas',
    ].join('\n'),
  );
});

test('force takes ownership of the fields', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v', l: 'v' }));
  const taken = await api.applyOk('bob', CONFIG_MAP, configMap({ k: 'w' }), 'force=true');
  assert.deepEqual(taken.data, { k: 'w', l: 'v' });
  assert.deepEqual(owners(taken), { 'alice Apply': ['.data.l'], 'bob Apply': ['.data.k'] });
});

test('a field that its applier omits is removed, unless another manager owns it', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ mine: '1', ours: '2', stays: '3' }));
  await api.applyOk('bob', CONFIG_MAP, configMap({ ours: '2' }));
  await api.merge('carol', CONFIG_MAP, { data: { hers: '4' } });
  const less = await api.applyOk('alice', CONFIG_MAP, configMap({ stays: '3' }));
  assert.deepEqual(less.data, { ours: '2', stays: '3', hers: '4' });
  const nothing = await api.applyOk('alice', CONFIG_MAP, configMap(undefined));
  assert.deepEqual(nothing.data, { ours: '2', hers: '4' });
  assert.deepEqual(Object.keys(owners(nothing)), ['bob Apply', 'carol Update']);
});

test('an apply that changes nothing writes nothing', async () => {
  const config = configMap({ k: 'v' }, { labels: { app: 'x' } });
  const made = await api.applyOk('alice', CONFIG_MAP, config);
  const repeated = await api.applyOk('alice', CONFIG_MAP, config);
  assert.deepEqual(repeated, made);
});

test('the live object, applied by its owner, changes nothing', async () => {
  const made = await api.applyOk('alice', GADGET, gadget({ color: 'red', parts: [{ name: 'a', value: '1' }] }));
  const { metadata, ...rest } = made;
  const { managedFields: _, ...said } = metadata;
  const repeated = await api.applyOk('alice', GADGET, { ...rest, metadata: said });
  assert.deepEqual(repeated.spec, made.spec);
  const third = await api.applyOk('alice', GADGET, { ...rest, metadata: { ...said, resourceVersion: undefined } });
  assert.equal(third.metadata.resourceVersion, repeated.metadata.resourceVersion);
});

test('a dry run returns the result and writes nothing', async () => {
  const response = await api.apply('alice', CONFIG_MAP, configMap({ k: 'v' }), 'dryRun=All');
  assert.equal(response.status, 201);
  assert.deepEqual(owners(response.body), { 'alice Apply': ['.data.k'] });
  assert.equal((await api.call('GET', CONFIG_MAP)).status, 404);
  const made = await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const changed = await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'w' }), 'dryRun=All');
  assert.deepEqual(changed.data, { k: 'w' });
  assert.deepEqual(await api.ok('GET', CONFIG_MAP), made);
});

test('a configuration may require a revision and a uid', async () => {
  const made = await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const { resourceVersion, uid } = made.metadata;
  const next = await api.apply('alice', CONFIG_MAP, configMap({ k: 'w' }, { resourceVersion, uid }));
  assert.equal(next.status, 200);
  const stale = await api.apply('alice', CONFIG_MAP, configMap({ k: 'x' }, { resourceVersion }));
  assert.match(stale.body.message, /the object has been modified; please apply your changes to the latest version/);
  assert.equal(stale.status, 409);
  const other = await api.apply('alice', CONFIG_MAP, configMap({ k: 'x' }, { uid: 'another' }));
  assert.match(other.body.message, /metadata.uid: Invalid value: "another": field is immutable/);
});

interface Refused {
  readonly config: Loose;
  readonly query?: string;
  readonly url?: string;
  readonly status: number;
  readonly message: string | RegExp;
}

const refused: Record<string, Refused> = {
  'no manager': {
    config: configMap({}),
    query: 'fieldManager=',
    status: 422,
    message: 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
  },
  'a manager that is too long': {
    config: configMap({}),
    query: `fieldManager=${'x'.repeat(129)}`,
    status: 422,
    message: 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
  },
  'a manager that is not printable': {
    config: configMap({}),
    query: 'fieldManager=a%07',
    status: 422,
    message:
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\\u0007": invalid character U+0007 (at position 1)',
  },
  'an unknown field': {
    config: { ...configMap({}), dota: {} },
    status: 400,
    message: 'failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dota: field not declared in schema',
  },
  'an unknown field of a custom kind': {
    url: GADGET,
    config: gadget({ colour: 'red' }),
    status: 400,
    message:
      'failed to create typed patch object (/a; golden.local/v1, Kind=Gadget): .spec.colour: field not declared in schema',
  },
  managedFields: {
    config: configMap({}, { managedFields: [] }),
    status: 400,
    message: 'metadata.managedFields must be nil',
  },
  'another kind': {
    config: { ...configMap({}), kind: 'Secret' },
    status: 400,
    message: 'invalid object type: /v1, Kind=Secret',
  },
  'no kind': { config: 'data: {}', status: 400, message: 'invalid object type: /, Kind=' },
  'a list': { config: [], status: 400, message: /error decoding YAML: .*cannot unmarshal array into Go value/ },
  'a body that is neither YAML nor JSON': { config: '{ "a": ', status: 400, message: /^error decoding YAML: / },
  'another name': {
    config: configMap({}, { name: 'b' }),
    status: 400,
    message: 'the name of the object (b) does not match the name on the URL (a)',
  },
  'no name if the object does not exist': {
    config: configMap({}, { name: undefined }),
    status: 400,
    message: 'the name of the object (a based on URL) was undeterminable: name must be provided',
  },
  'another namespace': {
    config: configMap({}, { namespace: 'other' }),
    status: 400,
    message: 'the namespace of the provided object does not match the namespace sent on the request',
  },
  'a uid if the object does not exist': {
    config: configMap({}, { uid: 'u' }),
    status: 409,
    message:
      'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid u, and no existing object was found',
  },
  'the status of an object that does not exist': {
    url: `${GADGET}/status`,
    config: gadget(undefined),
    status: 404,
    message: 'gadgets.golden.local "a" not found',
  },
};

for (const [what, { config, query, url = CONFIG_MAP, status, message }] of Object.entries(refused)) {
  test(`an apply with ${what} is refused`, async () => {
    const contentType = 'application/apply-patch+yaml';
    const answer = await api.call('PATCH', `${url}?${query ?? 'fieldManager=alice'}`, { body: config, contentType });
    assert.deepEqual([answer.status, answer.body.status], [status, 'Failure'], answer.text);
    if (typeof message === 'string') assert.equal(answer.body.message, message);
    else assert.match(answer.body.message, message);
  });
}

test('force is valid for apply only', async () => {
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  const { status, body } = await api.call('PATCH', `${CONFIG_MAP}?force=true`, { body: {} });
  assert.equal(status, 422);
  assert.equal(
    body.message,
    'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  );
});

test('a user who may patch but not create cannot create by an apply', async () => {
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'patcher' } };
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['patch'] }];
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/ns';
  await api.ok('POST', `${rbac}/roles`, { body: { ...role, rules } });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'patcher' };
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: MALLORY.name }];
  await api.ok('POST', `${rbac}/rolebindings`, { body: { ...role, kind: 'RoleBinding', roleRef, subjects } });
  await api.settle();
  const contentType = 'application/apply-patch+yaml';
  const options = { body: configMap({ k: 'v' }), contentType, user: MALLORY };
  const { status, body } = await api.call('PATCH', `${CONFIG_MAP}?fieldManager=m`, options);
  assert.equal(status, 403);
  assert.match(body.message, /User "mallory" cannot create resource "configmaps"/);
  await api.applyOk('alice', CONFIG_MAP, configMap({ k: 'v' }));
  assert.equal((await api.call('PATCH', `${CONFIG_MAP}?fieldManager=m`, options)).status, 200);
});

/**
 * RBAC through the whole API: roles take effect, users cannot grant what they do not hold, aggregation, impersonation.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ADMIN, startTestApi, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const AUTHENTICATED = 'system:authenticated';

let api: TestApi;
before(async () => {
  api = await startTestApi();
  for (const name of ['a', 'b']) {
    await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }
});
after(() => api.stop());

const as = (name: string, ...groups: string[]): CallOptions => ({ user: { name, groups: [...groups, AUTHENTICATED] } });

interface Rule {
  readonly verbs: string[];
  readonly apiGroups?: string[];
  readonly resources?: string[];
  readonly resourceNames?: string[];
}

const readRule = (resource: string, ...resourceNames: string[]): Rule => ({
  apiGroups: [''],
  resources: [resource],
  verbs: ['get', 'list', 'watch'],
  ...(resourceNames.length > 0 && { resourceNames }),
});

function role(name: string, rules: readonly Rule[], labels?: Record<string, string>): Loose {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, labels }, rules };
}

function binding(name: string, ref: string, subjects: readonly string[], namespace?: string): Loose {
  const [kind, roleName] = ref.split('/');
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace && { namespace }) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: roleName },
    subjects: subjects.map((subject) => ({ kind: 'User', name: subject })),
  };
}

function collectionOf({ kind, metadata }: Loose): string {
  const plural = `${String(kind).toLowerCase()}s`;
  return metadata.namespace === undefined ? `${RBAC}/${plural}` : `${RBAC}/namespaces/${metadata.namespace}/${plural}`;
}

const create = (object: Loose, options: CallOptions = {}) =>
  api.call('POST', collectionOf(object), { body: object, ...options });

async function createOk(object: Loose): Promise<void> {
  const { status, body } = await create(object);
  assert.equal(status, 201, JSON.stringify(body));
}

test('a role takes effect as soon as its write is answered, and ends with its deletion', async () => {
  const list = () => api.call('GET', '/api/v1/namespaces/a/configmaps', as('rita'));
  const refused = await list();
  assert.equal(refused.status, 403);
  assert.equal(
    refused.body.message,
    'configmaps is forbidden: User "rita" cannot list resource "configmaps" in API group "" in the namespace "a"',
  );
  await createOk(role('map-reader', [readRule('configmaps')]));
  await createOk(binding('rita', 'ClusterRole/map-reader', ['rita'], 'a'));
  assert.equal((await list()).status, 200);
  assert.equal((await api.call('GET', '/api/v1/namespaces/b/configmaps', as('rita'))).status, 403);
  await api.ok('DELETE', `${RBAC}/clusterroles/map-reader`);
  const dangling = await list();
  assert.equal(dangling.status, 403);
  assert.match(dangling.body.message, /: RBAC: clusterrole\.rbac\.authorization\.k8s\.io "map-reader" not found$/);
});

test('an admin of a namespace has permissions only in it', async () => {
  await createOk(binding('adam', 'ClusterRole/admin', ['adam'], 'a'));
  const adam = as('adam', 'team');
  const map = (namespace: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', namespace } });
  assert.equal((await api.call('POST', '/api/v1/namespaces/a/configmaps', { body: map('a'), ...adam })).status, 201);
  assert.equal((await api.call('POST', '/api/v1/namespaces/b/configmaps', { body: map('b'), ...adam })).status, 403);
  assert.equal((await api.call('GET', '/api/v1/namespaces/a', adam)).status, 200);
  assert.equal((await api.call('GET', '/api/v1/namespaces/b', adam)).status, 403);
  assert.equal((await api.call('GET', '/api/v1/nodes', adam)).status, 403);
});

const attempts: Record<string, { object: () => Loose; status: number; message?: RegExp }> = {
  'grants what they hold': { object: () => binding('ok', 'ClusterRole/view', ['x'], 'a'), status: 201 },
  'grants cluster-admin in the own namespace': {
    object: () => binding('up', 'ClusterRole/cluster-admin', ['adam'], 'a'),
    status: 403,
    message:
      /^rolebindings\.rbac\.authorization\.k8s\.io "up" is forbidden: user "adam" \(groups=\["team" "system:authenticated"\]\) is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\["\*"\], Resources:\["\*"\], Verbs:\["\*"\]\}\n\{NonResourceURLs:\["\*"\], Verbs:\["\*"\]\}$/,
  },
  'grants admin in another namespace': {
    object: () => binding('up', 'ClusterRole/admin', ['adam'], 'b'),
    status: 403,
    message: /cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "b"/,
  },
  'grants admin everywhere': {
    object: () => binding('up', 'ClusterRole/admin', ['adam']),
    status: 403,
    message: /cannot create resource "clusterrolebindings" .* at the cluster scope/,
  },
  'creates a role with more than they hold': {
    object: () => ({
      ...role('up', [{ apiGroups: [''], resources: ['pods/status'], verbs: ['update'] }]),
      kind: 'Role',
      metadata: { name: 'up', namespace: 'a' },
    }),
    status: 403,
    message: /not currently held:\n\{APIGroups:\[""\], Resources:\["pods\/status"\], Verbs:\["update"\]\}$/,
  },
};

for (const [name, { object, status, message }] of Object.entries(attempts)) {
  test(`an admin of a namespace ${name}: ${status}`, async () => {
    const answer = await create(object(), as('adam', 'team'));
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    if (message !== undefined) assert.match(answer.body.message, message);
  });
}

test('an update is checked by the resulting role, except for changes of finalizers only', async () => {
  const path = `${RBAC}/namespaces/a/roles/strong`;
  const strong = { ...role('strong', [readRule('nodes')]), kind: 'Role', metadata: { name: 'strong', namespace: 'a' } };
  await createOk(strong);
  const adam = as('adam');
  const patch = (body: Loose) => api.call('PATCH', path, { body, ...adam });
  assert.equal((await patch({ metadata: { finalizers: ['example.com/x'] } })).status, 200);
  assert.equal((await patch({ metadata: { labels: { a: 'b' } } })).status, 403);
  assert.equal((await patch({ rules: [readRule('nodes'), readRule('pods')] })).status, 403);
  assert.equal((await patch({ rules: [readRule('pods')] })).status, 200, 'the remaining permissions are held');
  assert.equal((await patch({ metadata: { finalizers: null } })).status, 200);
});

test('roles with the label of admin, edit or view are aggregated into them', async () => {
  const widgets = { apiGroups: ['example.com'], resources: ['widgets'], verbs: ['get'] };
  await createOk(role('widget-viewer', [widgets], { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }));
  const gathered = async (name: string): Promise<boolean> => {
    const { rules } = await api.ok('GET', `${RBAC}/clusterroles/${name}`);
    return JSON.stringify(rules ?? []).includes('widgets');
  };
  await awaitRole('admin', async () => (await gathered('view')) && (await gathered('edit')) && gathered('admin'));
  await api.ok('DELETE', `${RBAC}/clusterroles/widget-viewer`);
  await awaitRole('admin', async () => !(await gathered('admin')));
});

/** Waits for a state of the role, checked after each change. */
async function awaitRole(name: string, holds: () => Promise<boolean>): Promise<void> {
  const watch = await api.watch(`${RBAC}/clusterroles?watch=true&fieldSelector=metadata.name=${name}`);
  for (let seen = 1; !(await holds()); seen++) await watch.awaitEvents(seen);
  watch.stop();
}

/** Sends a GET with headers; returns the status and the message of a failure. */
async function get(path: string, { user = ADMIN }: CallOptions, headers: Record<string, string>) {
  const response = await api.core.handler({
    method: 'GET',
    path,
    query: new URLSearchParams(),
    user,
    accept: 'application/json',
    contentType: '',
    userAgent: 'test',
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
    body: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
  });
  assert.ok('body' in response);
  const bytes = Buffer.isBuffer(response.body) ? response.body : Buffer.concat(response.body);
  const { message } = JSON.parse(bytes.toString()) as { message?: string };
  return { status: response.status, message };
}

test('a user who may impersonate acts with the permissions of the other user only', async () => {
  const rule = { apiGroups: [''], resources: ['users'], resourceNames: ['adam'], verbs: ['impersonate'] };
  await createOk(role('impersonator', [rule]));
  await createOk(binding('ida', 'ClusterRole/impersonator', ['ida']));
  const secrets = '/api/v1/namespaces/a/secrets';
  const ida = as('ida');
  assert.equal((await get(secrets, ida, {})).status, 403);
  assert.equal((await get(secrets, ida, { 'impersonate-user': 'adam' })).status, 200);
  assert.deepEqual(await get(secrets, ida, { 'impersonate-user': 'adam', 'impersonate-group': 'system:masters' }), {
    status: 403,
    message:
      'groups "system:masters" is forbidden: User "ida" cannot impersonate resource "groups" in API group "" at the cluster scope',
  });
  assert.equal((await get(secrets, ida, { 'impersonate-user': 'rita' })).status, 403);
  assert.equal((await get(secrets, as('rita'), { 'impersonate-user': 'adam' })).status, 403);
  const asNobody = await get('/api/v1/nodes', { user: ADMIN }, { 'impersonate-user': 'nobody' });
  assert.equal(asNobody.status, 403, 'an admin who impersonates a user without permissions has none');
});

test('a name in the query of a write is ignored for authorization', async () => {
  await createOk(
    role('writes-foo', [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'], resourceNames: ['foo'] }]),
  );
  await createOk(binding('writes-foo', 'ClusterRole/writes-foo', ['eve'], 'a'));
  const secrets = '/api/v1/namespaces/a/secrets';
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'bar' } };
  const query = '?fieldSelector=metadata.name=foo';
  assert.equal((await api.call('POST', `${secrets}${query}`, { body, ...as('eve') })).status, 403);
  assert.equal((await api.call('DELETE', `${secrets}${query}`, as('eve'))).status, 403);
  assert.equal(
    (await api.call('GET', `${secrets}${query}`, as('eve'))).status,
    200,
    'a list with that name is allowed',
  );
  assert.equal((await api.call('GET', secrets, as('eve'))).status, 403);
});

test('the errors of a patch do not show stored values to a user who may not read the object', async () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'hidden' },
    stringData: { password: 'hunter2' },
  };
  await api.ok('POST', '/api/v1/namespaces/a/secrets', { body: secret });
  await createOk(role('patcher', [{ apiGroups: [''], resources: ['secrets'], verbs: ['patch'] }]));
  await createOk(binding('patcher', 'ClusterRole/patcher', ['pat']));
  const value = Buffer.from('hunter2').toString('base64');
  const url = '/api/v1/namespaces/a/secrets/hidden';
  for (const path of ['/metadata/name', '/metadata/uid', '/metadata/labels', '/immutable']) {
    const body = [{ op: 'copy', from: path.endsWith('labels') ? '/data' : '/data/password', path }];
    const options = { body, contentType: 'application/json-patch+json' };
    const { status, text } = await api.call('PATCH', url, { ...as('pat'), ...options });
    assert.ok(status === 400 || status === 422, `${path}: ${status}`);
    assert.ok(!text.includes(value), text);
    assert.match(text, /cannot get it/);
    assert.ok((await api.call('PATCH', url, options)).text.includes(value), 'a reader sees what is wrong');
  }
});

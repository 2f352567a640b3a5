/** The default roles at a start of the engine: created, left alone, repaired. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { DEFAULT_POLICY } from '#engine/auth/rbac/defaults/default-policy.ts';
import { ensureRbacDefaults } from '#engine/controllers/rbac/rbac-defaults.ts';
import { silentLog } from '#lib/log.ts';
import { ADMIN, startTestApi, type TestApi } from '#test/support/test-api.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

let api: TestApi;
const requests: string[] = [];

before(async () => {
  // Without controllers, nothing else writes meanwhile.
  api = await startTestApi({ controllers: false });
  for (const name of ['kube-system', 'kube-node-lease']) {
    await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }
  await start();
});
after(() => api.stop());

/** Runs the same steps as a start of the engine and returns its requests. */
async function start(): Promise<readonly string[]> {
  requests.length = 0;
  const transport = createInProcessTransport({
    handler(request) {
      requests.push(`${request.method} ${decodeURIComponent(request.path)}`);
      return api.core.handler(request);
    },
    user: ADMIN,
    userAgent: 'test',
  });
  await ensureRbacDefaults(createClient(transport), silentLog);
  return requests;
}

const writes = (made: readonly string[]) => made.filter((request) => !request.startsWith('GET '));

test('all defaults exist after the first start', async () => {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = DEFAULT_POLICY;
  const counts = await Promise.all(
    ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'].map(
      async (plural) => (await api.ok('GET', `${RBAC}/${plural}`)).items.length,
    ),
  );
  assert.deepEqual(
    counts,
    [clusterRoles, clusterRoleBindings, roles, roleBindings].map(({ length }) => length),
  );
});

test('a second start writes nothing and sends few requests', async () => {
  const before = api.store.revision;
  const made = await start();
  assert.equal(api.store.revision, before);
  assert.deepEqual(writes(made), []);
  assert.ok(made.length <= 6, made.join('\n'));
});

test('deleted defaults are restored', async () => {
  await api.ok('DELETE', `${RBAC}/clusterroles/view`);
  await api.ok('DELETE', `${RBAC}/namespaces/kube-system/roles/extension-apiserver-authentication-reader`);
  assert.equal(writes(await start()).length, 2);
  assert.equal((await api.ok('GET', `${RBAC}/clusterroles/view`)).metadata.name, 'view');
  assert.deepEqual(writes(await start()), []);
});

test('removed rules and subjects are restored, and added ones stay', async () => {
  const role = `${RBAC}/clusterroles/system:basic-user`;
  const binding = `${RBAC}/clusterrolebindings/system:basic-user`;
  const own = { apiGroups: [''], resources: ['own'], verbs: ['get'] };
  await api.ok('PATCH', role, { body: { rules: [own] } });
  await api.ok('PATCH', binding, { body: { subjects: [{ kind: 'User', name: 'x' }] } });
  assert.equal(writes(await start()).length, 2);
  const { rules } = await api.ok('GET', role);
  assert.deepEqual(rules[0], own);
  assert.ok(JSON.stringify(rules).includes('selfsubjectreviews'));
  const { subjects } = await api.ok('GET', binding);
  assert.deepEqual(
    subjects.map(({ name }: { name: string }) => name),
    ['x', 'system:authenticated'],
  );
  assert.deepEqual(writes(await start()), []);
});

test('objects that opted out are left alone', async () => {
  const role = `${RBAC}/clusterroles/system:monitoring`;
  const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' };
  await api.ok('PATCH', role, { body: { metadata: { annotations }, rules: [] } });
  assert.deepEqual(writes(await start()), []);
  assert.deepEqual((await api.ok('GET', role)).rules ?? [], []);
});

test('a binding to another role is created again', async () => {
  const path = `${RBAC}/clusterrolebindings/system:discovery`;
  const { roleRef, metadata, ...rest } = await api.ok('GET', path);
  await api.ok('DELETE', path);
  await api.ok('POST', `${RBAC}/clusterrolebindings`, {
    body: { ...rest, metadata: { name: metadata.name }, roleRef: { ...roleRef, name: 'cluster-admin' } },
  });
  assert.deepEqual(writes(await start()), [`DELETE ${path}`, `POST ${RBAC}/clusterrolebindings`]);
  assert.equal((await api.ok('GET', path)).roleRef.name, 'system:discovery');
});

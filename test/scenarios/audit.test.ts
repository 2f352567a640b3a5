/** The audit log through the whole core: which requests it records, and with which fields. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test } from 'node:test';
import { AUDIT_FLAGS } from '#cli/audit/audit-query.ts';
import { runAudit } from '#cli/audit/run-audit.ts';
import type { AuditRecord } from '#engine/audit/audit-record.ts';
import { formatEvent } from '#engine/audit/format-event.ts';
import { startAudit } from '#engine/audit/start-audit.ts';
import type { ApiRequest } from '#engine/request/request.ts';
import { systemClock } from '#lib/clock.ts';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { silentLog } from '#lib/log.ts';
import { ADMIN, MALLORY, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const aConfigMap = (metadata: Loose, data: Loose = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
const ALLOWED = { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' };
const FORBIDDEN = { 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': '' };

suite('the audit log', () => {
  let api: TestApi;
  const records: AuditRecord[] = [];
  before(async () => {
    api = await startTestApi({ controllers: false, audit: (record) => void records.push(record) });
    await api.ok('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } },
    });
  });
  after(() => api.stop());
  beforeEach(() => void records.splice(0));

  const events = (): Loose[] => records.map((record) => JSON.parse(formatEvent(record)));
  const onlyEvent = (): Loose => {
    const [event, ...more] = events();
    assert.deepEqual(more, []);
    return event;
  };

  test('records a create with the name from its body', async () => {
    await api.ok('POST', CONFIG_MAPS, { body: aConfigMap({ name: 'one' }, { password: 'hunter2' }) });
    const { objectRef, verb, responseStatus, annotations, user, userAgent, sourceIPs } = onlyEvent();
    assert.deepEqual(objectRef, { resource: 'configmaps', namespace: 'default', name: 'one', apiVersion: 'v1' });
    assert.deepEqual([verb, responseStatus.code, user.username, userAgent], ['create', 201, ADMIN.name, 'test']);
    assert.deepEqual(annotations, ALLOWED);
    assert.equal(sourceIPs, undefined, 'a caller in this process has no address');
    assert.doesNotMatch(JSON.stringify(events()), /hunter2/);
  });

  test('records a create with the generated name', async () => {
    const created = await api.ok('POST', CONFIG_MAPS, { body: aConfigMap({ generateName: 'gen-' }) });
    assert.equal(onlyEvent().objectRef.name, created.metadata.name);
  });

  test('records the name in a refused request', async () => {
    await api.call('POST', CONFIG_MAPS, { body: aConfigMap({ name: 'twice' }) });
    await api.call('POST', CONFIG_MAPS, { body: aConfigMap({ name: 'twice' }) });
    await api.call('POST', CONFIG_MAPS, { body: aConfigMap({ name: 'Not-Valid' }) });
    const entries = events().map(({ objectRef, responseStatus: { code, message } }) => [objectRef.name, code, message]);
    assert.deepEqual(entries, [
      ['twice', 201, undefined],
      ['twice', 409, 'configmaps "twice" already exists'],
      ['Not-Valid', 422, 'invalid: metadata.name'],
    ]);
  });

  test('records every kind of write, and no successful reads', async () => {
    const item = `${CONFIG_MAPS}/life`;
    const body = aConfigMap({ name: 'life' });
    await api.ok('POST', CONFIG_MAPS, { body });
    await api.ok('GET', item);
    await api.ok('GET', CONFIG_MAPS);
    await api.ok('PUT', item, { body });
    await api.ok('PATCH', item, { body: { data: { a: 'b' } } });
    await api.ok('DELETE', item);
    await api.ok('DELETE', CONFIG_MAPS);
    await api.ok('GET', '/healthz');
    assert.deepEqual(
      events().map(({ verb }) => verb),
      ['create', 'update', 'patch', 'delete', 'deletecollection'],
    );
  });

  test('records refused requests of any verb', async () => {
    await api.call('GET', `${CONFIG_MAPS}/absent`);
    await api.call('GET', '/api/v1/secrets', { user: MALLORY });
    await api.call('GET', '/metrics', { user: MALLORY });
    await api.call('GET', '/apis/nowhere/v1/things');
    const entries = events().map(({ verb, responseStatus, user, requestURI, annotations }) => {
      return [user.username, verb, requestURI, responseStatus.code, annotations];
    });
    assert.deepEqual(entries, [
      ['admin', 'get', `${CONFIG_MAPS}/absent`, 404, ALLOWED],
      ['mallory', 'list', '/api/v1/secrets', 403, FORBIDDEN],
      ['mallory', 'get', '/metrics', 403, FORBIDDEN],
      ['admin', 'list', '/apis/nowhere/v1/things', 404, ALLOWED],
    ]);
  });

  test('records dry runs, warnings and the binding that allowed a request', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const kind = (name: string) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: name });
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['create'] }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'maker' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'mallory' }];
    await api.ok('POST', `${rbac}/clusterroles`, {
      body: { ...kind('ClusterRole'), metadata: { name: 'maker' }, rules },
    });
    await api.ok('POST', `${rbac}/clusterrolebindings`, {
      body: { ...kind('ClusterRoleBinding'), metadata: { name: 'm' }, roleRef, subjects },
    });
    records.splice(0);
    const body = { ...aConfigMap({ name: 'dry' }), surplus: 1 };
    await api.ok('POST', `${CONFIG_MAPS}?dryRun=All&fieldValidation=Warn&token=hunter2`, { body, user: MALLORY });
    const { requestURI, annotations } = onlyEvent();
    assert.equal(requestURI, `${CONFIG_MAPS}?dryRun=All&fieldValidation=Warn&token=REDACTED`);
    assert.deepEqual(annotations, {
      'authorization.k8s.io/decision': 'allow',
      'authorization.k8s.io/reason': 'RBAC: allowed by ClusterRoleBinding "m" of ClusterRole "maker" to User "mallory"',
      'audit.selfsame.io/dry-run': 'All',
      'audit.selfsame.io/warnings': '["unknown field \\"surplus\\""]',
    });
  });

  test('omits access reviews, unless they are refused', async () => {
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const type = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' };
    const body = { ...type, spec: { user: 'mallory', resourceAttributes: { verb: 'get', resource: 'pods' } } };
    await api.ok('POST', reviews, { body });
    await api.call('POST', reviews, { body, user: MALLORY });
    assert.deepEqual([onlyEvent().user.username, onlyEvent().responseStatus.code], ['mallory', 403]);
  });

  /** Sends a request with headers, as over the network. */
  async function impersonate(user: ApiRequest['user'], as: string): Promise<number> {
    const bytes = Buffer.from(JSON.stringify(aConfigMap({ name: 'theirs' })));
    const response = await api.core.handler({
      method: 'POST',
      path: CONFIG_MAPS,
      query: new URLSearchParams(),
      user,
      accept: 'application/json',
      contentType: 'application/json',
      userAgent: 'test',
      header: (name) => (name === 'impersonate-user' ? as : undefined),
      headerNames: () => ['impersonate-user'],
      body: async () => bytes,
      signal: new AbortController().signal,
    });
    return response.status;
  }

  test('records both the impersonated and the real user', async () => {
    assert.equal(await impersonate(ADMIN, 'jane'), 403);
    const { user, impersonatedUser, annotations } = onlyEvent();
    assert.equal(user.username, 'admin');
    assert.deepEqual(impersonatedUser, { username: 'jane', groups: ['system:authenticated'] });
    assert.deepEqual(annotations, FORBIDDEN);
  });

  test('records a refused impersonation', async () => {
    assert.equal(await impersonate(MALLORY, 'admin'), 403);
    const { user, impersonatedUser, annotations, responseStatus } = onlyEvent();
    assert.deepEqual([user.username, impersonatedUser], ['mallory', undefined]);
    assert.deepEqual(annotations, FORBIDDEN);
    assert.match(responseStatus.message, /cannot impersonate resource "users"/);
  });
});

test('selfsame audit shows what the server writes, with the controllers but without their Leases and Events', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'audit-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const options = { level: 'writes', maxBytes: 20_000, maxRotated: 50 } as const;
  const audit = startAudit(dataDir, options, { clock: systemClock, log: silentLog, metrics: new MetricRegistry() });
  assert.ok(audit);
  const api = await startTestApi({ audit: audit.sink });
  for (let i = 0; i < 60; i++) await api.ok('POST', CONFIG_MAPS, { body: aConfigMap({ name: `c${i}` }) });
  const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject: { namespace: 'default' } };
  await api.ok('POST', '/api/v1/namespaces/default/events', { body: event });
  await api.settle();
  await api.stop();
  await audit.close();

  const show = async (...words: string[]) => {
    let shown = '';
    const stdout = { write: (text: string) => (shown += text) };
    const { signal } = new AbortController();
    const { flags } = parseArgs(AUDIT_FLAGS, words);
    await runAudit({ dataDir, flags, stdout, stderr: stdout, clock: systemClock, signal });
    return shown.trimEnd().split('\n');
  };
  const names = (await show('-o', 'json', '--user', 'admin', '--resource', 'configmaps')).map(
    (line) => JSON.parse(line).objectRef.name,
  );
  assert.deepEqual(
    names,
    Array.from({ length: 60 }, (_, i) => `c${i}`),
    'rotated files are shown, too, in order',
  );
  const all = await show();
  assert.ok(all.some((line) => / system:apiserver +create +namespaces +kube-system +- *$/.test(line)));
  assert.ok(!all.some((line) => / events /.test(line)));
});

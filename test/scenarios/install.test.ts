/** What an administrator applies to a cluster: again without a change, over an older version, beside what others wrote. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { applyInstallation, INSTALL_MANAGER, installObjects, installYaml, isOfForeignKind } from '#operator/install.ts';
import { CLUSTER_ROLES } from '#operator/kinds.ts';
import { ADMIN, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let client: Client;
before(async () => {
  api = await startTestApi({});
  client = createClient(createInProcessTransport({ handler: api.core.handler, user: ADMIN, userAgent: 'test' }));
});
after(() => api.stop());

async function install({ dryRun = false } = {}): Promise<string[]> {
  const lines: string[] = [];
  await applyInstallation({ client, clock: systemClock, dryRun, say: (line) => lines.push(line) });
  return lines.filter((line) => !/ unchanged( \(dry run\))?$|^note: /.test(line));
}

async function revisions(): Promise<string[]> {
  const served = installObjects().filter(({ type }) => type.plural !== 'csidrivers');
  const found = await Promise.all(
    served.map(({ type, object: { metadata } }) =>
      client.get(type, { namespace: metadata.namespace, name: metadata.name ?? '' }),
    ),
  );
  return found.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`);
}

test('a dry run makes nothing', async () => {
  assert.ok((await install({ dryRun: true })).length > 50);
  await assert.rejects(client.get(CLUSTER_ROLES, { name: 'selfsame:node' }), /not found/);
});

test('applied twice, no object has another revision', async () => {
  assert.ok((await install()).length > 50);
  await api.settle();
  const first = await revisions();
  assert.deepEqual(await install(), []);
  assert.deepEqual(await revisions(), first);
});

test('over an older version: what it had and we have not is gone, what others wrote stays', async () => {
  const name = 'selfsame:node';
  const wanted = await client.get(CLUSTER_ROLES, { name });
  const older = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels: { 'selfsame.io/gone': 'true' } },
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'] }],
  };
  await client.apply(CLUSTER_ROLES, older, { fieldManager: INSTALL_MANAGER, force: true });
  const note = { metadata: { labels: { theirs: 'yes' }, annotations: { theirs: 'too' } } };
  await client.patch(CLUSTER_ROLES, { name }, { type: 'merge', body: note }, { fieldManager: 'somebody' });
  assert.deepEqual(await install(), [`clusterroles.rbac.authorization.k8s.io/${name} configured`]);
  const { metadata, rules } = await client.get(CLUSTER_ROLES, { name });
  assert.deepEqual(rules, wanted.rules);
  assert.equal(metadata.labels?.['selfsame.io/gone'], undefined);
  assert.equal(metadata.labels?.['theirs'], 'yes');
  assert.equal(metadata.annotations?.['theirs'], 'too');
});

test('what is printed is all of it but what the operator makes only where it is missing', () => {
  const documents = parseAllDocuments(installYaml()).map((document) => document.toJS() as { kind: string });
  const printed = installObjects().filter((wanted) => wanted.once !== true && !isOfForeignKind(wanted));
  assert.equal(documents.length, printed.length);
  const kinds = new Set(documents.map(({ kind }) => kind));
  for (const kind of [
    'CustomResourceDefinition',
    'ClusterRole',
    'ValidatingAdmissionPolicy',
    'APIService',
    'Service',
  ]) {
    assert.ok(kinds.has(kind), kind);
  }
  for (const kind of ['VolumeSnapshotClass', 'StorageProfile']) {
    assert.ok(!kinds.has(kind), `kubectl refuses a ${kind} where its definition is not served yet`);
  }
});

/**
 * Installation on a cluster: repeated without a change, over an older version, and beside objects of other programs.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { isApiError } from '#kube/api-error.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { makeAuthority } from '#lib/pki/authority.ts';
import { GUEST_NETWORKS } from '#api/network/guest-network.ts';
import { applyInstallation, INSTALL_MANAGER, installObjects, installYaml, isOfForeignKind } from '#operator/install.ts';
import { planUninstall } from '#operator/uninstall.ts';
import { CLUSTER_ROLES, VALIDATING_WEBHOOKS } from '#kube/cluster-kinds.ts';
import { ADMIN, startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let client: Client;
before(async () => {
  api = await startTestApi({});
  client = createClient(createInProcessTransport({ handler: api.core.handler, user: ADMIN, userAgent: 'test' }));
});
after(() => api.stop());

async function install({ dryRun = false, subnets }: { dryRun?: boolean; subnets?: string[] } = {}): Promise<string[]> {
  const lines: string[] = [];
  await applyInstallation({ client, clock: systemClock, dryRun, subnets, print: (line) => lines.push(line) });
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

test('a dry run creates nothing', async () => {
  assert.ok((await install({ dryRun: true })).length > 50);
  await assert.rejects(client.get(CLUSTER_ROLES, { name: 'selfsame:node' }), /not found/);
});

test('applied twice, no object has a new revision', async () => {
  assert.ok((await install()).length > 50);
  await api.settle();
  const first = await revisions();
  assert.deepEqual(await install(), []);
  assert.deepEqual(await revisions(), first);
});

test('the network of guests is created if it is absent, and never changed', async () => {
  assert.deepEqual(await install({ subnets: ['10.50.0.0/16'] }), ['guestnetworks.network.selfsame.io/default created']);
  assert.deepEqual(await install({ subnets: ['10.51.0.0/16'] }), []);
  const { spec } = await client.get(GUEST_NETWORKS, { name: 'default' });
  assert.deepEqual(spec.subnets, ['10.50.0.0/16']);
});

test('over an older version: obsolete fields are removed, fields of other managers stay', async () => {
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

test('the printed manifest contains everything except what the operator creates only if it is missing', () => {
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
    assert.ok(!kinds.has(kind), `kubectl refuses a ${kind} whose definition is not served yet`);
  }
});

test('admission is applied, and printed, before the kinds that it covers', () => {
  const kinds = installObjects().map(({ object }) => object.kind);
  const rules = ['WebhookConfiguration', 'AdmissionPolicy', 'AdmissionPolicyBinding'];
  const last = kinds.findLastIndex((kind) => rules.some((rule) => kind?.endsWith(rule)));
  assert.ok(last > 0 && last < kinds.indexOf('CustomResourceDefinition'));
});

test('a bare cluster accepts the whole manifest while no webhook answers, and stores no VM', async () => {
  await client.get(KUBEVIRTS, { namespace: 'selfsame-system', name: 'kubevirt' });
  const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'db', namespace: 'default' } };
  await assert.rejects(
    client.create(VIRTUAL_MACHINES, { ...vm, spec: { runStrategy: 'Halted', template: {} } }),
    /failed calling webhook "mutate-virtualmachines.selfsame.io"/,
  );
});

/**
 * Installs what the operator of an older version leaves on a cluster: its authority, and a hook for KubeVirt objects.
 */
async function downgradeWebhooks(): Promise<void> {
  const name = 'selfsame';
  const { webhooks } = await client.get(VALIDATING_WEBHOOKS, { name });
  const rule = { operations: ['*'], apiGroups: ['kubevirt.io'], apiVersions: ['v1'], resources: ['kubevirts'] };
  const service = { namespace: 'selfsame-system', name: 'selfsame-webhook', path: '/validate-kubevirts' };
  const hook = {
    name: 'validate-kubevirts.selfsame.io',
    ...{ clientConfig: { service }, rules: [rule], sideEffects: 'None', admissionReviewVersions: ['v1'] },
  };
  const older = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [...(webhooks as Loose[]).map((hook) => ({ ...hook, matchConditions: undefined })), hook],
  };
  await client.apply(VALIDATING_WEBHOOKS, older, { fieldManager: INSTALL_MANAGER, force: true });
  const all = (await client.get(VALIDATING_WEBHOOKS, { name }))['webhooks'] as Loose[];
  const caBundle = Buffer.from(
    makeAuthority({ commonName: 'test' }, { nowMs: systemClock.now(), lifetimeMs: 86_400_000 }).pem,
  ).toString('base64');
  const value = all.map((hook) => ({ ...hook, clientConfig: { ...hook.clientConfig, caBundle } }));
  const body = [{ op: 'add', path: '/webhooks', value }];
  await client.patch(VALIDATING_WEBHOOKS, { name }, { type: 'json', body }, { fieldManager: 'selfsame-operator' });
}

test('over a version with a webhook for KubeVirt objects: that hook is removed, authorities stay', async () => {
  await downgradeWebhooks();
  assert.deepEqual(await install(), [
    'validatingwebhookconfigurations.admissionregistration.k8s.io/selfsame configured',
  ]);
  const hooks = (await client.get(VALIDATING_WEBHOOKS, { name: 'selfsame' }))['webhooks'] as Loose[];
  assert.ok(hooks.length > 0);
  assert.ok(!hooks.some(({ name }) => name.includes('kubevirts')));
  for (const { name, clientConfig } of hooks) assert.ok(clientConfig.caBundle, name);
  const name = { namespace: 'selfsame-system', name: 'kubevirt' };
  const body = { spec: { configuration: { evictionStrategy: 'LiveMigrate' } } };
  await client.patch(KUBEVIRTS, name, { type: 'merge', body });
});

test('uninstalled by the printed commands and installed again, everything is as before', async () => {
  const found = await planUninstall(client);
  assert.ok('commands' in found);
  const targets = found.commands.map((command) => command.replace('kubectl delete --ignore-not-found ', ''));
  const firstKind = targets.findIndex((target) => target.startsWith('customresourcedefinitions'));
  const lastRule = targets.findLastIndex((target) => /^[a-z]+\.admissionregistration/.test(target));
  assert.ok(lastRule < firstKind, 'admission is removed before the kinds');
  const byTarget = new Map<string, { type: ResourceType; name: { namespace?: string | undefined; name: string } }>(
    installObjects().map(({ type, object: { metadata } }) => {
      const { namespace, name = '' } = metadata;
      const where = namespace === undefined ? '' : ` -n ${namespace}`;
      return [`${groupResource(type)} ${name}${where}`, { type, name: { namespace, name } }] as const;
    }),
  );
  for (const target of targets) {
    const { type, name } = byTarget.get(target)!;
    await client.delete(type, name).catch((error: unknown) => assert.ok(isApiError(error, 'NotFound'), String(error)));
    await api.settle();
  }
  assert.ok((await install()).length > 50);
  await api.settle();
  assert.deepEqual(await install(), []);
});

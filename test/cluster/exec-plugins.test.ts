/** Controllers and nodes on an existing API server whose kubeconfigs get their credentials from exec plugins. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { NODES } from '#kube/core-kinds.ts';
import { ADDRESS, launchProgram, startCluster, type Cluster } from '#test/support/cluster-processes.ts';
import type { Loose } from '#test/support/test-api.ts';

const V1 = 'client.authentication.k8s.io/v1';

const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => void ends.push(end) };
let cluster: Cluster;

before(async () => {
  cluster = await startCluster(scope);
});
after(async () => {
  for (const end of ends.toReversed()) await end();
});

/** Moves the credentials of a kubeconfig into a plugin that prints them, and returns the new kubeconfig. */
function withPlugin(kubeconfig: string): string {
  const config: Loose = parse(readFileSync(kubeconfig, 'utf8'));
  const { user } = config['users'][0];
  const decode = (data: string | undefined) => data && Buffer.from(data, 'base64').toString('utf8');
  const status = {
    token: existsSync(`${kubeconfig}.token`) ? readFileSync(`${kubeconfig}.token`, 'utf8') : undefined,
    clientCertificateData: decode(user['client-certificate-data']),
    clientKeyData: decode(user['client-key-data']),
  };
  const output = JSON.stringify({ kind: 'ExecCredential', apiVersion: V1, status });
  writeFileSync(`${kubeconfig}.output`, output, { mode: 0o600 });
  const exec = { apiVersion: V1, command: 'cat', args: [`${kubeconfig}.output`], interactiveMode: 'Never' };
  config['users'][0].user = { exec };
  const path = `${kubeconfig}.exec`;
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

test('controllers use the token and a node uses the certificate of a plugin', async () => {
  const own = withPlugin(await cluster.join('controllers'));
  const where = ['--listen-address', ADDRESS, '--advertise-address', ADDRESS, '--webhook-port', '0'];
  const controllers = launchProgram(scope, ['controllers', '--kubeconfig', own, ...where]);
  await controllers.awaitLine('leading');
  const nodeConfig = withPlugin(await cluster.join('node', 'vm-host-1'));
  const dirs = ['--data-dir', join(cluster.dir, 'vm-host-1'), '--shared-dir', join(cluster.dir, 'shared')];
  const flags = ['--name', 'vm-host-1', '--hypervisor', 'fake', '--address', ADDRESS];
  const node = launchProgram(scope, ['node', '--kubeconfig', nodeConfig, ...dirs, ...flags]);
  await node.awaitLine('ready');
  const { metadata } = await cluster.admin.get(NODES, { name: 'vm-host-1' });
  assert.equal(metadata.name, 'vm-host-1');
});

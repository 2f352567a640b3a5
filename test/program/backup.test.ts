/** `selfsame backup`, `restore-backup` and `doctor --bundle` as an operator uses them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS, SECRETS } from '#kube/core-kinds.ts';
import { checkMetrics } from '#test/support/promtool.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import {
  loadServerAccess,
  startServer,
  createTemporaryDir,
  openTransport,
  type Scope,
} from '#test/support/server-process.ts';

const SELFSAME = join(import.meta.dirname, '../../selfsame');
const FLEET = ['up', '--hypervisor', 'fake', '--nodes', '0'];

function selfsame(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(SELFSAME, args, (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }));
  });
}

function clientOf(t: Scope, dataDir: string) {
  return createClient(openTransport(t, loadServerAccess(dataDir)));
}

const aConfigMap = (name: string, data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});

test('a backup of a running server contains the writes that were acknowledged before it, and no later ones', async (t) => {
  const dir = createTemporaryDir(t);
  const [dataDir, file] = [join(dir, 'data'), join(dir, 'b.tar.gz')];
  const first = await startServer(t, { dataDir });
  const made = await clientOf(t, dataDir).create(CONFIG_MAPS, aConfigMap('before', { a: '1' }));

  const backup = await selfsame('backup', '--data-dir', dataDir, '--to', file);
  assert.match(backup.stdout, /from the running server\. It contains keys/, backup.stderr);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await clientOf(t, dataDir).create(CONFIG_MAPS, aConfigMap('after', {}));
  const busy = await selfsame('restore-backup', '--data-dir', dataDir, '--from', file);
  assert.match(busy.stderr, /it is held by process \d+; stop it first/);
  const keys = readFileSync(join(dataDir, 'pki/ca.crt'), 'utf8');
  await first.kill('SIGKILL');

  const restored = await selfsame('restore-backup', '--data-dir', dataDir, '--from', file);
  assert.match(
    restored.stdout,
    /^Restored .* to its state of \d{4}-.*, revision \d+\nThe previous data was moved to .*replaced-/,
  );
  const aside = readdirSync(dataDir).find((name) => name.startsWith('replaced-')) ?? '';
  assert.ok(readdirSync(join(dataDir, aside)).includes('store.db'));
  await startServer(t, { dataDir });
  const client = clientOf(t, dataDir);
  assert.equal(
    (await client.get(CONFIG_MAPS, { namespace: 'default', name: 'before' })).metadata.uid,
    made.metadata.uid,
  );
  await assert.rejects(client.get(CONFIG_MAPS, { namespace: 'default', name: 'after' }), /not found/);
  assert.equal(readFileSync(join(dataDir, 'pki/ca.crt'), 'utf8'), keys);
});

test('a backup of a stopped server can be restored to another directory, and a damaged one is refused without any change', async (t) => {
  const dir = createTemporaryDir(t);
  const [dataDir, other, file] = [join(dir, 'data'), join(dir, 'other'), join(dir, 'b.tar.gz')];
  const server = await startServer(t, { dataDir });
  await clientOf(t, dataDir).create(CONFIG_MAPS, aConfigMap('kept', {}));
  await server.kill('SIGTERM');
  const backup = await selfsame('backup', '--data-dir', dataDir, '--to', file);
  assert.match(backup.stdout, /from the files/, backup.stderr);

  const archive = readFileSync(file);
  writeFileSync(join(dir, 'cut.tar.gz'), archive.subarray(0, archive.length - 100));
  writeFileSync(join(dir, 'text.tar.gz'), 'nothing');
  for (const name of ['cut.tar.gz', 'text.tar.gz']) {
    const refused = await selfsame('restore-backup', '--data-dir', other, '--from', join(dir, name));
    assert.match(refused.stderr, /Cannot restore .*: it was not created by selfsame backup, or it is damaged/);
    assert.equal(refused.code, 1);
  }
  assert.equal(statSync(other, { throwIfNoEntry: false }), undefined);
  assert.equal((await selfsame('restore-backup', '--data-dir', other, '--from', file)).code, 0);
  await startServer(t, { dataDir: other });
  await clientOf(t, other).get(CONFIG_MAPS, { namespace: 'default', name: 'kept' });
});

test('a user without rights cannot take a backup', async (t) => {
  const dir = createTemporaryDir(t);
  const [dataDir, tokenAuthFile] = [join(dir, 'data'), join(dir, 'tokens')];
  writeFileSync(tokenAuthFile, 'abcdefgh,alice,1,"system:authenticated"\n');
  await startServer(t, { dataDir, tokenAuthFile });
  const { server, certificateAuthority } = loadServerAccess(dataDir);
  const transport = openTransport(t, {
    server,
    certificateAuthority: certificateAuthority!,
    token: 'abcdefgh',
    namespace: 'default',
    insecureSkipTlsVerify: false,
  });
  await assert.rejects(transport.request({ method: 'POST', path: '/backup' }), /forbidden/i);
});

test('a support bundle contains the objects, and no secrets', { timeout: 120_000 }, async (t) => {
  const dir = createTemporaryDir(t);
  const [dataDir, file] = [join(dir, 'data'), join(dir, 'bundle.tar.gz')];
  const server = await startServer(t, { dataDir, command: FLEET });
  const client = clientOf(t, dataDir);
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'default' },
    stringData: { key: 'hunter2-in-a-secret' },
  };
  await client.create(SECRETS, secret);
  await client.create(CONFIG_MAPS, aConfigMap('c', { key: 'hunter2-in-a-config' }));
  await client.create(
    { ...CONFIG_MAPS, group: 'kubevirt.io', kind: 'VirtualMachine', plural: 'virtualmachines' },
    vmWithSecrets,
  );

  const metrics = await sendHttp1Request(server.access(), { path: '/metrics' });
  checkMetrics(metrics.text);
  for (const name of ['apiserver_request_total{', 'selfsame_delete_protection_available ', 'process_open_fds ']) {
    assert.ok(metrics.text.includes(`\n${name}`), name);
  }

  const { stdout, code, stderr } = await selfsame('doctor', '--data-dir', dataDir, '--port', '0', '--bundle', file);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Review it before you share it/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const text = gunzipSync(readFileSync(file)).toString('latin1');
  for (const name of ['doctor.txt', 'about.json', 'audit.log', 'objects/nodes.json', 'metrics.txt']) {
    assert.ok(text.includes(`selfsame-bundle/${name}`), name);
  }
  assert.ok(text.includes('"kept-by-name"'), 'it contains objects');
  for (const hidden of ['hunter2', Buffer.from('hunter2-in-a-secret').toString('base64'), 'PRIVATE KEY', 'eyJ']) {
    assert.ok(!text.includes(hidden), hidden);
  }
  for (const key of ['ca.key', 'sa.key', 'server.key']) {
    const body = readFileSync(join(dataDir, 'pki', key), 'utf8').split('\n')[1] ?? '';
    assert.ok(body.length > 20 && !text.includes(body), key);
  }
});

const vmWithSecrets = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: {
    name: 'kept-by-name',
    namespace: 'default',
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2' },
  },
  spec: {
    runStrategy: 'Halted',
    template: {
      spec: {
        domain: { memory: { guest: '128Mi' }, devices: { disks: [{ name: 'seed', cdrom: { bus: 'sata' } }] } },
        volumes: [{ name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\npassword: hunter2' } }],
      },
    },
  },
};

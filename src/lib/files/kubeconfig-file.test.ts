import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { kubeconfigText, replaceClientCertificate, writeKubeconfig } from '#lib/files/kubeconfig-file.ts';

const options = { server: 'https://127.0.0.1:6443', caPem: 'CA', user: 'admin', certPem: 'CERT', keyPem: 'KEY' };

test('a kubeconfig has one cluster, user and context, all named selfsame', () => {
  assert.deepEqual(parse(kubeconfigText(options)), {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'selfsame', cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': 'Q0E=' } },
    ],
    users: [{ name: 'selfsame', user: { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': 'S0VZ' } }],
    contexts: [{ name: 'selfsame', context: { cluster: 'selfsame', user: 'selfsame', namespace: 'default' } }],
    'current-context': 'selfsame',
    preferences: {},
  });
});

test('keeps long values on one line and escapes the user name in the comment', () => {
  const text = kubeconfigText({ ...options, caPem: 'x'.repeat(3000), user: 'a\nevil: true' });
  assert.match(text, /certificate-authority-data: (eHh4)+\n/);
  assert.equal(parse(text).evil, undefined);
});

test('replaces the certificate and key of the current user and keeps everything else', () => {
  const before = kubeconfigText({ ...options, serverName: 'kubernetes' });
  const after =
    replaceClientCertificate(before, { certPem: 'NEW', keyPem: 'NEWER' }) ?? assert.fail('the file has none');
  assert.equal(after, kubeconfigText({ ...options, serverName: 'kubernetes', certPem: 'NEW', keyPem: 'NEWER' }));
  const many = before.replace('users:\n', 'users:\n  - name: other # another user\n    user: {}\n');
  const renewed = replaceClientCertificate(many, { certPem: 'NEW', keyPem: 'NEWER' }) ?? '';
  assert.match(renewed, /another user/);
  assert.deepEqual(
    parse(renewed).users.map(({ user }: { user: object }) => Object.keys(user).length),
    [0, 2],
  );
});

test('returns undefined if the certificate is not in the file itself', () => {
  const elsewhere = kubeconfigText(options).replace(/client-certificate-data: .*/, 'client-certificate: tls.crt');
  assert.equal(replaceClientCertificate(elsewhere, options), undefined);
  assert.equal(replaceClientCertificate('current-context: gone', options), undefined);
});

test('replaces the whole file and makes it readable for its owner only', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  t.after(() => rm(dir, { recursive: true }));
  const file = join(dir, 'kubeconfig');
  await writeFile(file, 'old', { mode: 0o644 });
  await writeKubeconfig({ file, ...options });
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal(await readFile(file, 'utf8'), kubeconfigText(options));
  assert.deepEqual(await readdir(dir), ['kubeconfig']);
});

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { PkiError, ensurePki } from '#engine/auth/certificates.ts';
import { newKeyPair, privateKeyPem } from '#lib/pki/x509.ts';
import { silentLog } from '#lib/log.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const START = Date.UTC(2026, 0, 1);
const HOSTS = ['localhost', '127.0.0.1', '::1'];

async function aDir(t: TestContext): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'pki-'));
  t.after(() => rm(parent, { recursive: true }));
  return join(parent, 'pki');
}

const ensure = (dir: string, { hosts = HOSTS, day = 0 } = {}) =>
  ensurePki({ dir, hosts, now: () => START + day * DAY_MS, log: silentLog });

test('the first start creates a CA for ten years and a server certificate for one year', async (t) => {
  const pki = await ensure(await aDir(t));
  const [ca, server] = [new X509Certificate(pki.caPem), new X509Certificate(pki.server.certPem)];
  assert.ok(server.checkIssued(ca) && server.verify(ca.publicKey));
  assert.equal(ca.validToDate.getTime(), START + 3650 * DAY_MS);
  assert.equal(server.validToDate.getTime(), START + 365 * DAY_MS);
  for (const host of ['127.0.0.1', '::1']) assert.ok(server.checkIP(host));
});

test('keys are 0600, the directory 0700, and no temporary file remains', async (t) => {
  const dir = await aDir(t);
  await ensure(dir);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  const names = (await readdir(dir)).toSorted();
  assert.deepEqual(names, ['ca.crt', 'ca.key', 'server.crt', 'server.key']);
  for (const name of names) assert.equal((await stat(join(dir, name))).mode & 0o777, 0o600, name);
});

test('the mode of a key that others can read is corrected', async (t) => {
  const dir = await aDir(t);
  await ensure(dir);
  await chmod(join(dir, 'ca.key'), 0o644);
  await ensure(dir);
  assert.equal((await stat(join(dir, 'ca.key'))).mode & 0o777, 0o600);
});

interface Renewal {
  readonly hosts?: string[];
  readonly day?: number;
  readonly renewed: boolean;
}

const renewals: Record<string, Renewal> = {
  'a second start keeps the server certificate': { renewed: false },
  'a start 31 days before expiry keeps it': { day: 365 - 31, renewed: false },
  'a start within 30 days of expiry renews it': { day: 365 - 29, renewed: true },
  'a start after expiry renews it': { day: 400, renewed: true },
  'a new host renews it': { hosts: [...HOSTS, '10.0.0.1'], renewed: true },
  'a removed host renews it': { hosts: ['localhost', '127.0.0.1'], renewed: true },
  'another host renews it': { hosts: ['localhost', '127.0.0.1', '::2'], renewed: true },
  'the same hosts in another order and with a duplicate keep it': {
    hosts: [...HOSTS, 'localhost'].toReversed(),
    renewed: false,
  },
};

for (const [name, { renewed, ...changes }] of Object.entries(renewals)) {
  test(name, async (t) => {
    const dir = await aDir(t);
    const before = await ensure(dir);
    const after = await ensure(dir, changes);
    assert.equal(after.caPem, before.caPem, 'the CA must not change');
    assert.equal(after.server.certPem !== before.server.certPem, renewed);
    assert.equal(after.server.keyPem !== before.server.keyPem, renewed);
  });
}

test('a renewal that was interrupted between key and certificate is repeated', async (t) => {
  const dir = await aDir(t);
  await ensure(dir);
  await writeFile(join(dir, 'server.key'), privateKeyPem(newKeyPair().privateKey));
  const { server } = await ensure(dir);
  const stored = new X509Certificate(await readFile(join(dir, 'server.crt')));
  assert.equal(stored.toString(), new X509Certificate(server.certPem).toString());
  assert.equal(await readFile(join(dir, 'server.key'), 'utf8'), server.keyPem);
});

test('a first start that was interrupted between CA key and certificate continues with that key', async (t) => {
  const dir = await aDir(t);
  const before = await ensure(dir);
  const key = await readFile(join(dir, 'ca.key'), 'utf8');
  await rm(join(dir, 'ca.crt'));
  const after = await ensure(dir);
  assert.equal(await readFile(join(dir, 'ca.key'), 'utf8'), key);
  const oldServer = new X509Certificate(before.server.certPem);
  assert.ok(oldServer.checkIssued(new X509Certificate(after.caPem)), 'previously issued certificates must stay valid');
});

const damages: Record<string, [damage: (dir: string) => Promise<void>, message: RegExp]> = {
  'a CA certificate without its key': [(dir) => rm(join(dir, 'ca.key')), /ca\.crt exists but ca\.key is missing/],
  'an empty CA key': [(dir) => writeFile(join(dir, 'ca.key'), ''), /ca\.key": it contains no private key/],
  'a truncated CA certificate': [
    (dir) => writeFile(join(dir, 'ca.crt'), '-----BEGIN CERTIFICATE-----\nMIIB'),
    /ca\.crt": it contains no certificate/,
  ],
  'a CA key of another CA': [
    (dir) => writeFile(join(dir, 'ca.key'), privateKeyPem(newKeyPair().privateKey)),
    /ca\.key does not belong to ca\.crt/,
  ],
  'a symbolic link as CA key': [
    async (dir) => {
      await rm(join(dir, 'ca.key'));
      await symlink('/etc/hostname', join(dir, 'ca.key'));
    },
    /Cannot read ".*ca\.key": ELOOP/,
  ],
};

for (const [name, [damage, message]] of Object.entries(damages)) {
  test(`rejects ${name} and changes nothing`, async (t) => {
    const dir = await aDir(t);
    await ensure(dir);
    await damage(dir);
    const before = await readdir(dir);
    await assert.rejects(ensure(dir), (error) => error instanceof PkiError && message.test(error.message));
    assert.deepEqual(await readdir(dir), before);
  });
}

test('an expired CA is rejected with its directory', async (t) => {
  const dir = await aDir(t);
  await ensure(dir);
  await assert.rejects(ensure(dir, { day: 3651 }), /it expired on 2035-12-30/);
});

test('client certificates are issued by the CA and never outlive it', async (t) => {
  const pki = await ensure(await aDir(t));
  const ca = new X509Certificate(pki.caPem);
  const issued = pki.issueClientCertificate({ user: 'jane', groups: ['dev'], days: 10_000 });
  const certificate = new X509Certificate(issued.certPem);
  assert.ok(certificate.checkIssued(ca) && certificate.verify(ca.publicKey));
  assert.equal(certificate.subject, 'O=dev\nCN=jane');
  assert.equal(certificate.validToDate.getTime(), ca.validToDate.getTime());
  assert.throws(() => pki.issueClientCertificate({ user: '', groups: [], days: 1 }), PkiError);
});

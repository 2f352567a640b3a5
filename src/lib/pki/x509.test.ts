import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCertificate, newKeyPair } from '#lib/pki/x509.ts';
import type { CertificateOptions } from '#lib/pki/x509.ts';

const NOT_BEFORE = Date.UTC(2025, 0, 1);
/** After 2049, so that both encodings of time are used. */
const NOT_AFTER = Date.UTC(2055, 5, 30, 12, 34, 56);

const ca = newKeyPair();
const leaf = newKeyPair();
const CA = { commonName: 'test-ca' };

function aCertificate(overrides: Partial<CertificateOptions>): string {
  return makeCertificate({
    subject: CA,
    publicKey: leaf.publicKey,
    issuer: CA,
    issuerKey: ca.privateKey,
    issuerPublicKey: ca.publicKey,
    notBeforeMs: NOT_BEFORE,
    notAfterMs: NOT_AFTER,
    purpose: { kind: 'client' },
    ...overrides,
  });
}

const caPem = aCertificate({ publicKey: ca.publicKey, purpose: { kind: 'authority' } });
const serverPem = aCertificate({
  subject: { commonName: 'server' },
  purpose: { kind: 'server', hosts: ['localhost', 'kubernetes.default', '127.0.0.1', '::1'] },
});
const clientPem = aCertificate({ subject: { commonName: 'jane', organizations: ['dev', 'ops'] } });

const authority = new X509Certificate(caPem);
const server = new X509Certificate(serverPem);
const client = new X509Certificate(clientPem);

test('an authority is self-signed and may sign other certificates', () => {
  assert.equal(authority.ca, true);
  assert.ok(authority.verify(ca.publicKey));
  assert.ok(authority.checkIssued(authority));
});

for (const [name, certificate] of Object.entries({ server, client })) {
  test(`a ${name} certificate is issued by the authority and may not sign`, () => {
    assert.equal(certificate.ca, false);
    assert.ok(certificate.verify(ca.publicKey));
    assert.ok(certificate.checkIssued(authority));
    assert.ok(certificate.checkPrivateKey(leaf.privateKey));
    assert.ok(!certificate.verify(newKeyPair().publicKey));
  });
}

test('a server certificate is valid for its names and addresses only', () => {
  assert.equal(server.checkHost('localhost'), 'localhost');
  assert.equal(server.checkHost('kubernetes.default'), 'kubernetes.default');
  assert.equal(server.checkHost('server'), undefined);
  assert.equal(server.checkIP('127.0.0.1'), '127.0.0.1');
  assert.equal(server.checkIP('::1'), '::1');
  assert.equal(server.checkIP('127.0.0.2'), undefined);
});

test('each purpose carries its extended key usage', () => {
  assert.deepEqual(server.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  assert.deepEqual(client.keyUsage, ['1.3.6.1.5.5.7.3.2']);
});

test('keeps validity to the second, before and after 2050', () => {
  assert.equal(client.validFromDate.getTime(), NOT_BEFORE);
  assert.equal(client.validToDate.getTime(), NOT_AFTER);
});

test('serial numbers are positive, long and unique', () => {
  const serials = Array.from({ length: 50 }, () => new X509Certificate(aCertificate({})).serialNumber);
  assert.equal(new Set(serials).size, serials.length);
  for (const serial of serials) assert.match(serial, /^[4-7][0-9A-F]{31}$/);
});

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

test('openssl verifies both certificates', { skip: hasOpenssl ? false : 'the openssl command is missing' }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'x509-'));
  try {
    const file = (name: string, pem: string) => {
      writeFileSync(join(dir, name), pem);
      return join(dir, name);
    };
    const caFile = file('ca.crt', caPem);
    const verify = (purpose: string, path: string) =>
      execFileSync('openssl', ['verify', '-x509_strict', '-CAfile', caFile, '-purpose', purpose, path]).toString();
    assert.match(verify('sslserver', file('server.crt', serverPem)), /: OK$/m);
    assert.match(verify('sslclient', file('client.crt', clientPem)), /: OK$/m);
    assert.match(verify('any', caFile), /: OK$/m);
    const wrong = spawnSync('openssl', ['verify', '-CAfile', caFile, '-purpose', 'sslserver', join(dir, 'client.crt')]);
    assert.notEqual(wrong.status, 0, 'a client certificate must not be valid for a server');
  } finally {
    rmSync(dir, { recursive: true });
  }
});

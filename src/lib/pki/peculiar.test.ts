/** Compares our certificates with @peculiar/x509: it reads ours, and we read the ones that it makes. */
// @peculiar/x509 needs it globally.
// oxlint-disable-next-line import/no-unassigned-import
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createHash, createPublicKey, KeyObject, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import * as x509 from '@peculiar/x509';
import { BACKDATED_MS, issue, issueForKey, makeAuthority, readAuthority } from '#lib/pki/authority.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import { makeRequest, newKeyPair, privateKeyPem, type Purpose } from '#lib/pki/x509.ts';

x509.cryptoProvider.set(crypto);

const NOW = Date.UTC(2030, 0, 1);
const DAY_MS = 24 * 60 * 60 * 1000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const SERVER_AUTH = x509.ExtendedKeyUsage.serverAuth;
const CLIENT_AUTH = x509.ExtendedKeyUsage.clientAuth;
const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags;

const authority = makeAuthority({ commonName: 'test-ca' }, { nowMs: NOW, lifetimeMs: 10 * DAY_MS });
const HOSTS = ['localhost', '*.example.org', '127.0.0.1', '::1', '2001:db8::ff00:42:8329', '::ffff:10.0.0.1'];
const READ_HOSTS = [
  ['dns', 'localhost'],
  ['dns', '*.example.org'],
  ['ip', '127.0.0.1'],
  ['ip', '::1'],
  ['ip', '2001:db8::ff00:42:8329'],
  ['ip', '::ffff:a00:1'],
];

interface Expected {
  readonly purpose: Purpose;
  readonly extendedUsages: readonly string[];
  readonly names: readonly (readonly string[])[] | undefined;
}

const cases: Record<string, Expected> = {
  server: { purpose: { kind: 'server', hosts: HOSTS }, extendedUsages: [SERVER_AUTH], names: READ_HOSTS },
  client: { purpose: { kind: 'client' }, extendedUsages: [CLIENT_AUTH], names: undefined },
  peer: { purpose: { kind: 'peer', hosts: HOSTS }, extendedUsages: [SERVER_AUTH, CLIENT_AUTH], names: READ_HOSTS },
};

for (const [name, { purpose, extendedUsages, names }] of Object.entries(cases)) {
  test(`@peculiar/x509 reads our ${name} certificate`, async () => {
    const subject = { commonName: 'jane', organizations: ['dev', 'ops'] };
    const { certPem } = issue(authority, { subject, purpose, nowMs: NOW, lifetimeMs: DAY_MS });
    const read = new x509.X509Certificate(certPem);
    const issuer = new x509.X509Certificate(authority.pem);
    assert.equal(read.subject, 'O=dev, O=ops, CN=jane');
    assert.equal(read.issuer, 'CN=test-ca');
    assert.equal(read.notBefore.getTime(), NOW - BACKDATED_MS);
    assert.equal(read.notAfter.getTime(), NOW + DAY_MS);
    assert.match(read.serialNumber, /^[4-7][0-9a-f]{31}$/);
    const constraints = read.getExtension(x509.BasicConstraintsExtension);
    assert.deepEqual([constraints?.ca, constraints?.pathLength, constraints?.critical], [false, undefined, true]);
    const usages = read.getExtension(x509.KeyUsagesExtension);
    assert.deepEqual([usages?.usages, usages?.critical], [digitalSignature, true]);
    assert.deepEqual([...(read.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? [])], extendedUsages);
    const found = read
      .getExtension(x509.SubjectAlternativeNameExtension)
      ?.names.items.map((item) => [item.type, item.value]);
    assert.deepEqual(found, names);
    const keyId = issuer.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
    assert.equal(read.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId, keyId);
    assert.equal(await read.verify({ publicKey: issuer.publicKey, date: new Date(NOW) }), true);
    const after = { publicKey: issuer.publicKey, date: new Date(NOW + DAY_MS + 1000) };
    assert.equal(await read.verify(after), false, 'it has expired');
    const stranger = new x509.X509Certificate(makeAuthority(authority.subject, { nowMs: NOW, lifetimeMs: DAY_MS }).pem);
    assert.equal(await read.verify({ publicKey: stranger.publicKey, date: new Date(NOW) }), false);
    const chain = await new x509.X509ChainBuilder({ certificates: [issuer, stranger] }).build(read);
    assert.deepEqual(
      Array.from(chain, ({ subject: link }) => link),
      ['O=dev, O=ops, CN=jane', 'CN=test-ca'],
    );
  });
}

test('@peculiar/x509 reads our authority', async () => {
  const read = new x509.X509Certificate(authority.pem);
  const constraints = read.getExtension(x509.BasicConstraintsExtension);
  assert.deepEqual([constraints?.ca, constraints?.pathLength, constraints?.critical], [true, undefined, true]);
  assert.equal(read.getExtension(x509.KeyUsagesExtension)?.usages, digitalSignature | keyCertSign | cRLSign);
  assert.equal(await read.isSelfSigned(), true);
  const point = createPublicKey(authority.privateKey).export({ type: 'spki', format: 'der' }).subarray(-65);
  const keyId = createHash('sha256').update(point).digest('hex').slice(0, 40);
  assert.equal(read.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId, keyId);
});

test('@peculiar/x509 reads times before and after 2050', () => {
  for (const lifetimeMs of [DAY_MS, 40 * 365 * DAY_MS]) {
    const { pem } = makeAuthority({ commonName: 'x' }, { nowMs: NOW, lifetimeMs });
    assert.equal(new x509.X509Certificate(pem).notAfter.getTime(), NOW + lifetimeMs);
  }
});

test('@peculiar/x509 verifies our certificate request', async () => {
  const keys = newKeyPair();
  const read = new x509.Pkcs10CertificateRequest(
    makeRequest({ commonName: 'system:node:n1', organizations: ['system:nodes'] }, keys),
  );
  assert.equal(read.subject, 'O=system:nodes, CN=system:node:n1');
  assert.equal(await read.verify(), true);
  assert.deepEqual(Buffer.from(read.publicKey.rawData), keys.publicKey.export({ type: 'spki', format: 'der' }));
});

async function makeForeign(extensions: readonly x509.Extension[] = []) {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=test-ca',
    notBefore: new Date(NOW),
    notAfter: new Date(NOW + DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [...extensions],
  });
  return { keys, pem: made.toString('pem') };
}

test('an authority that @peculiar/x509 made issues our certificates', async () => {
  const { keys, pem } = await makeForeign([
    new x509.BasicConstraintsExtension(true, 0, true),
    new x509.KeyUsagesExtension(keyCertSign, true),
  ]);
  const privateKey = KeyObject.from(keys.privateKey);
  const foreign = readAuthority({ commonName: 'test-ca' }, pem, privateKeyPem(privateKey));
  const { publicKey } = newKeyPair();
  const options = {
    subject: { commonName: 'a' },
    purpose: { kind: 'client' },
    nowMs: NOW,
    lifetimeMs: 9 * DAY_MS,
  } as const;
  const certificate = new X509Certificate(issueForKey(foreign, publicKey, options));
  assert.equal(certificate.validToDate.getTime(), NOW + DAY_MS, 'it does not outlive its authority');
  assert.equal(isIssuedBy(certificate, pem), true);
  assert.equal(isIssuedBy(certificate, authority.pem), false, 'an authority with the same name has another key');
  assert.equal(
    await new x509.X509Certificate(certificate.raw).verify({ publicKey: keys.publicKey, date: new Date(NOW + 1) }),
    true,
  );
});

test('a certificate of @peculiar/x509 that may not sign is no issuer', async () => {
  const { keys, pem } = await makeForeign([
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(digitalSignature, true),
  ]);
  const privateKey = KeyObject.from(keys.privateKey);
  const foreign = readAuthority({ commonName: 'test-ca' }, pem, privateKeyPem(privateKey));
  const options = {
    subject: { commonName: 'a' },
    purpose: { kind: 'client' },
    nowMs: NOW,
    lifetimeMs: DAY_MS,
  } as const;
  assert.equal(isIssuedBy(new X509Certificate(issue(foreign, options).certPem), pem), false);
});

/** Certificates and requests (DER) that a client presents, with damaged fields. node:crypto reads them; we use the result. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { userOfPeerCertificate } from '#engine/auth/authenticate.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import { isRenewalDue, renewalCheckMs } from '#lib/pki/renewal.ts';
import { makeCertificate, newKeyPair } from '#lib/pki/x509.ts';
import { checkInputs } from '#test/fuzz/check-inputs.ts';
import { byteMutations, type Mutation } from '#test/fuzz/mutations.ts';

const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const YEAR_MS = 365 * 86_400_000;
const authority = { subject: { commonName: 'ca' }, ...newKeyPair() };
const issued = {
  issuer: authority.subject,
  issuerKey: authority.privateKey,
  issuerPublicKey: authority.publicKey,
  notBeforeMs: NOW_MS,
};
const caPem = makeCertificate({
  ...{ ...issued, subject: authority.subject, publicKey: authority.publicKey },
  ...{ notAfterMs: NOW_MS + YEAR_MS, purpose: { kind: 'authority' } as const },
});

const subject = fc.record({
  commonName: fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1 }),
    fc.constantFrom('a\0b', 'system:admin', '__proto__', 'CN=x, O=y'),
  ),
  organizations: fc.array(
    fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('system:masters', '\0')),
    { maxLength: 3 },
  ),
});
const keys = newKeyPair();
const certificate = fc.tuple(subject, fc.constantFrom(1, YEAR_MS, 100 * YEAR_MS)).map(([name, lifetimeMs]) =>
  derOf(
    makeCertificate({
      ...{ ...issued, subject: name, publicKey: keys.publicKey },
      ...{ notAfterMs: NOW_MS + lifetimeMs + 1000, purpose: { kind: 'client' } as const },
    }),
  ),
);

function derOf(pem: string): Buffer {
  return Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
}

const pemOf = (der: Buffer) => `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;
const unchanged: Mutation = (bytes) => bytes;

test('no certificate crashes its readers, and a damaged one is never ours', (t) =>
  checkInputs(
    t,
    { runs: 800, values: fc.tuple(certificate, fc.oneof(byteMutations, fc.constant(unchanged))) },
    async ([valid, mutate]) => {
      const bytes = mutate(valid);
      let parsed: X509Certificate;
      try {
        parsed = new X509Certificate(bytes);
      } catch {
        return;
      }
      // OpenSSL ignores bytes after the certificate, which are not part of it.
      const isSame = parsed.raw.equals(valid);
      assert.equal(isIssuedBy(parsed, caPem), isSame, 'only the unchanged certificate is ours');
      assert.equal(isIssuedBy(new X509Certificate(caPem), pemOf(parsed.raw)), false);
      const user = userOfPeerCertificate(parsed);
      assert.notEqual(user?.name, '');
      assert.equal(typeof isRenewalDue(pemOf(parsed.raw), NOW_MS), 'boolean');
      const everyMs = renewalCheckMs(pemOf(parsed.raw), { minMs: 10, maxMs: 1000 });
      assert.ok(everyMs >= 10 && everyMs <= 1000, `it is checked every ${everyMs} ms`);
    },
  ));

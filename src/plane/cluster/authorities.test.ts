import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  authoritiesFromData,
  authoritiesToData,
  bundleOf,
  nextAuthorities,
  signerOf,
} from '#plane/cluster/authorities.ts';
import { issue, type Authority } from '#lib/pki/authority.ts';
import { certificatesIn, isIssuedBy } from '#lib/pki/issued-by.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2030, 0, 1);
const lifetimes = { authorityMs: 40 * HOUR, certificateMs: 10 * HOUR };

/** Returns the authorities after hourly checks. */
function after(hours: number): readonly Authority[] {
  let known: readonly Authority[] = [];
  for (let hour = 0; hour <= hours; hour++) known = nextAuthorities(known, START + hour * HOUR, lifetimes);
  return known;
}

const cases: Record<string, { hours: number; count: number; signer: number }> = {
  'the first signs at once, because there is no other': { hours: 0, count: 1, signer: 0 },
  'there is only one before half of its lifetime': { hours: 19, count: 1, signer: 0 },
  'the next is created at half of the lifetime, and does not sign yet': { hours: 20, count: 2, signer: 0 },
  'the next does not sign until all certificates were renewed': { hours: 29, count: 2, signer: 0 },
  'the next signs after one lifetime of a certificate, and the old one is still trusted': {
    hours: 30,
    count: 2,
    signer: 1,
  },
  'expired ones are removed': { hours: 41, count: 2, signer: 0 },
};
for (const [sentence, { hours, count, signer }] of Object.entries(cases)) {
  test(`authorities: ${sentence}`, () => {
    const known = after(hours);
    assert.equal(known.length, count);
    assert.equal(signerOf(known, START + hours * HOUR, lifetimes), known[signer]);
  });
}

test('returns the same list if nothing is due, so that nothing is written', () => {
  const known = after(3);
  assert.equal(nextAuthorities(known, START + 4 * HOUR, lifetimes), known);
});

test('stored authorities are read oldest first, and their certificates are trusted', () => {
  const known = after(25);
  const read = authoritiesFromData(authoritiesToData(known));
  assert.equal(bundleOf(read), bundleOf(known));
  const { certPem } = issue(read[1]!, {
    subject: { commonName: 'x' },
    purpose: { kind: 'peer', hosts: ['10.0.0.1', 'n1'] },
    nowMs: START,
    lifetimeMs: HOUR,
  });
  const [certificate] = certificatesIn(certPem);
  assert.ok(isIssuedBy(certificate, bundleOf(known)));
  assert.equal(isIssuedBy(certificate, read[0]!.pem), false);
});

test('a damaged authority is an error, and is not replaced', () => {
  const data = authoritiesToData(after(0));
  const name = Object.keys(data).find((key) => key.endsWith('.key')) ?? '';
  assert.throws(
    () => authoritiesFromData({ ...data, [name]: 'AAAA' }),
    /Cannot use the certificate authority \d{16}\.crt: /,
  );
});

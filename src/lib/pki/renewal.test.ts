import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACKDATED_MS, issue, makeAuthority } from '#lib/pki/authority.ts';
import { isRenewalDue, renewalCheckMs } from '#lib/pki/renewal.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 1);
const authority = makeAuthority({ commonName: 'ca' }, { nowMs: NOW_MS, lifetimeMs: 100 * HOUR_MS });
const { certPem } = issue(authority, {
  subject: { commonName: 'a' },
  purpose: { kind: 'client' },
  nowMs: NOW_MS,
  lifetimeMs: 10 * HOUR_MS,
});

const cases: Record<string, { afterMs: number; backdatedMs?: number; want: boolean }> = {
  'is not due before half of the lifetime': { afterMs: 5 * HOUR_MS - 1000, backdatedMs: BACKDATED_MS, want: false },
  'is due at half of the lifetime': { afterMs: 5 * HOUR_MS, backdatedMs: BACKDATED_MS, want: true },
  'counts the whole validity of other issuers': { afterMs: 5 * HOUR_MS - BACKDATED_MS / 2, want: true },
};
for (const [name, { afterMs, want, ...options }] of Object.entries(cases)) {
  test(`a renewal ${name}`, () => assert.equal(isRenewalDue(certPem, NOW_MS + afterMs, options), want));
}

test('a certificate is checked twenty times in its life, within limits', () => {
  const check = (minMs: number, maxMs: number) => renewalCheckMs(certPem, { minMs, maxMs, backdatedMs: BACKDATED_MS });
  assert.equal(check(0, HOUR_MS), HOUR_MS / 2);
  assert.equal(check(0, 1000), 1000);
  assert.equal(check(2 * HOUR_MS, 3 * HOUR_MS), 2 * HOUR_MS);
});

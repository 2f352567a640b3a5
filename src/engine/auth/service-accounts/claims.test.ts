import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeClaims, encodeClaims, type Claims, type IssuedClaims } from '#engine/auth/service-accounts/claims.ts';

const account = { name: 'robot', uid: 'u1' };

const issued = (more: Partial<IssuedClaims> = {}): IssuedClaims => ({
  type: 'issued',
  namespace: 'ns',
  account,
  audiences: ['a', 'b'],
  issuedAt: 1000,
  expiresAt: 4600,
  id: 'j1',
  ...more,
});

const standard = {
  aud: ['a', 'b'],
  exp: 4600,
  iat: 1000,
  iss: 'https://kubernetes.default.svc',
  jti: 'j1',
  nbf: 1000,
  sub: 'system:serviceaccount:ns:robot',
};

const encodings: Record<string, { claims: Claims; want: Record<string, unknown> }> = {
  'an unbound token': {
    claims: issued(),
    want: { ...standard, 'kubernetes.io': { namespace: 'ns', serviceaccount: account } },
  },
  'a token bound to a pod on a node': {
    claims: issued({ pod: { name: 'p', uid: 'u2' }, node: { name: 'n', uid: 'u3' }, warnAfter: 2000 }),
    want: {
      ...standard,
      'kubernetes.io': {
        namespace: 'ns',
        node: { name: 'n', uid: 'u3' },
        pod: { name: 'p', uid: 'u2' },
        serviceaccount: account,
        warnafter: 2000,
      },
    },
  },
  'an unknown node': {
    claims: issued({ pod: { name: 'p', uid: 'u2' }, node: { name: 'n', uid: '' } }),
    want: {
      ...standard,
      'kubernetes.io': {
        namespace: 'ns',
        node: { name: 'n' },
        pod: { name: 'p', uid: 'u2' },
        serviceaccount: account,
      },
    },
  },
  'a token bound to a secret': {
    claims: issued({ secret: { name: 's', uid: 'u4' } }),
    want: {
      ...standard,
      'kubernetes.io': { namespace: 'ns', secret: { name: 's', uid: 'u4' }, serviceaccount: account },
    },
  },
  'a token in a secret': {
    claims: { type: 'secret', namespace: 'ns', account, secretName: 's' },
    want: {
      iss: 'kubernetes/serviceaccount',
      'kubernetes.io/serviceaccount/namespace': 'ns',
      'kubernetes.io/serviceaccount/secret.name': 's',
      'kubernetes.io/serviceaccount/service-account.name': 'robot',
      'kubernetes.io/serviceaccount/service-account.uid': 'u1',
      sub: 'system:serviceaccount:ns:robot',
    },
  },
};

for (const [name, { claims, want }] of Object.entries(encodings)) {
  test(`encodes ${name} like Kubernetes and decodes it`, () => {
    const payload = encodeClaims(claims);
    assert.deepEqual(payload, want);
    // warnAfter is relevant only when a token is issued.
    const { warnAfter: _, ...kept } = claims as IssuedClaims;
    assert.deepEqual(plain(decodeClaims(payload)), plain(kept));
  });
}

/** Drops undefined fields. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

const good = encodeClaims(issued());
const kubernetes = { namespace: 'ns', serviceaccount: account };
const legacy = encodeClaims({ type: 'secret', namespace: 'ns', account, secretName: 's' });

const foreign: Record<string, unknown> = {
  'no object': [good],
  'another issuer': { ...good, iss: 'https://example.org' },
  'no issuer': { ...good, iss: undefined },
  'no end': { ...good, exp: undefined },
  'an expiry that is not a number': { ...good, exp: '9999999999' },
  'no beginning': { ...good, iat: undefined },
  'no audience': { ...good, aud: undefined },
  'a subject that is another account': { ...good, sub: 'system:serviceaccount:ns:admin' },
  'no subject': { ...good, sub: undefined },
  'no account': { ...good, 'kubernetes.io': { namespace: 'ns' } },
  'an account without uid': { ...good, 'kubernetes.io': { ...kubernetes, serviceaccount: { name: 'robot' } } },
  'no namespace': { ...good, 'kubernetes.io': { serviceaccount: account }, sub: 'system:serviceaccount::robot' },
  'a secret without name': { ...legacy, 'kubernetes.io/serviceaccount/secret.name': '' },
  "a secret's account without uid": { ...legacy, 'kubernetes.io/serviceaccount/service-account.uid': undefined },
};

for (const [name, payload] of Object.entries(foreign)) {
  test(`rejects ${name}`, () => assert.equal(decodeClaims(payload), undefined));
}

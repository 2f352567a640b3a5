import assert from 'node:assert/strict';
import { createHmac, sign } from 'node:crypto';
import { test } from 'node:test';
import { encodeClaims } from '#engine/auth/service-accounts/claims.ts';
import { signToken } from '#engine/auth/service-accounts/issuer.ts';
import { readToken } from '#engine/auth/service-accounts/read-token.ts';
import { newSigningKey } from '#engine/auth/service-accounts/signing-key.ts';

const key = newSigningKey();
const payload = encodeClaims({
  type: 'issued',
  namespace: 'ns',
  account: { name: 'robot', uid: 'u1' },
  audiences: ['a'],
  issuedAt: 1000,
  expiresAt: 4600,
  id: 'j1',
});
const token = signToken(key, payload);
const [head = '', body = '', tail = ''] = token.split('.');

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The same claims with another header, signed with our key. */
function withHeader(header: object): string {
  const signed = `${part(header)}.${body}`;
  const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

function hmacWithPublicKey(): string {
  const signed = `${part({ alg: 'HS256', kid: key.id })}.${body}`;
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' });
  return `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`;
}

function derSignature(): string {
  return `${head}.${body}.${sign('sha256', Buffer.from(`${head}.${body}`), key.privateKey).toString('base64url')}`;
}

/** The last character has four bits that decoders ignore. */
function otherEncoding(): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1)!) + 1];
}

const BAD = 'square/go-jose: error in cryptographic primitive';
const UNKNOWN = 'invalid signature, no keys found';

/** `claims`, `not ours`, or the reason of the refusal. */
const cases: Record<string, [token: string, want: string]> = {
  'our own': [token, 'claims'],
  'our own without key id': [withHeader({ alg: 'ES256' }), 'claims'],
  'signed with another key': [signToken(newSigningKey(), payload), UNKNOWN],
  'signed with another key under our key id': [signToken({ ...newSigningKey(), id: key.id }, payload), BAD],
  'other claims under our signature': [`${head}.${part({ ...payload, exp: 9e9 })}.${tail}`, BAD],
  'another header under our signature': [`${part({ kid: key.id, alg: 'ES256' })}.${body}.${tail}`, BAD],
  'alg none without signature': [`${part({ alg: 'none' })}.${body}.`, 'not ours'],
  'alg none with a signature': [`${part({ alg: 'none' })}.${body}.${tail}`, BAD],
  'alg None signed': [withHeader({ alg: 'None' }), BAD],
  'alg HS256 keyed with our public key': [hmacWithPublicKey(), BAD],
  'an unknown critical extension': [withHeader({ alg: 'ES256', crit: ['b64'], b64: false }), BAD],
  'a signature in DER': [derSignature(), BAD],
  'another encoding of the signature': [otherEncoding(), BAD],
  'padding after the signature': [`${token}==`, BAD],
  'a truncated signature': [token.slice(0, -1), BAD],
  'no signature': [`${head}.${body}`, 'not ours'],
  'four parts': [`${token}.x`, 'not ours'],
  'a truncated payload': [`${head}.${body.slice(0, 10)}.${tail}`, 'not ours'],
  'a header that is not JSON': [`x.${body}.${tail}`, 'not ours'],
  'a header that is a list': [`${part([])}.${body}.${tail}`, 'not ours'],
  'a payload that is null': [signToken(key, null as never), 'not ours'],
  'a foreign issuer, signed by us': [signToken(key, { ...payload, iss: 'https://example.org' }), 'not ours'],
  'our issuer without claims': [signToken(key, { iss: 'https://kubernetes.default.svc' }), 'not ours'],
  nothing: ['', 'not ours'],
  dots: ['..', 'not ours'],
  'text that is not a JWT': ['s3cret', 'not ours'],
  'a huge token': [signToken(key, { ...payload, aud: ['x'.repeat(70_000)] }), 'not ours'],
};

for (const [name, [text, want]] of Object.entries(cases)) {
  test(`reads ${name}: ${want}`, () => {
    const read = readToken(text, key);
    assert.equal(read === undefined ? 'not ours' : 'refused' in read ? read.refused : 'claims', want);
  });
}

test('a token with any changed character is rejected', () => {
  for (let i = 0; i < token.length; i += 7) {
    const changed = token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1);
    const read = readToken(changed, key);
    assert.ok(read === undefined || 'refused' in read, `position ${i}`);
  }
});

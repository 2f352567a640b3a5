import assert from 'node:assert/strict';
import { createPublicKey, verify, type JsonWebKey } from 'node:crypto';
import { test } from 'node:test';
import { signToken } from '#engine/auth/service-accounts/issuer.ts';
import { openIdDocument } from '#engine/auth/service-accounts/openid.ts';
import { newSigningKey } from '#engine/auth/service-accounts/signing-key.ts';

const key = newSigningKey();
const read = (path: string) => {
  const { contentType, body } = openIdDocument(path, key, 'localhost:6443')!;
  return { contentType, value: JSON.parse(String(body)) as Record<string, unknown> };
};

test('the configuration contains the URL of the keys', () => {
  assert.deepEqual(read('/.well-known/openid-configuration'), {
    contentType: 'application/json',
    value: {
      issuer: 'https://kubernetes.default.svc',
      jwks_uri: 'https://localhost:6443/openid/v1/jwks',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    },
  });
});

test('the key set verifies tokens and contains no private key', () => {
  const { contentType, value } = read('/openid/v1/jwks');
  assert.equal(contentType, 'application/jwk-set+json');
  const [jwk] = value['keys'] as JsonWebKey[];
  assert.deepEqual(Object.keys(jwk!).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  const [head = '', body = '', tail = ''] = signToken(key, { sub: 'x' }).split('.');
  assert.equal((JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }).kid, jwk!['kid']);
  const publicKey = createPublicKey({ key: jwk!, format: 'jwk' });
  const signature = Buffer.from(tail, 'base64url');
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  assert.ok(verify('sha256', Buffer.from(`${head}.${body}`), options, signature));
});

test('other paths return nothing', () => {
  for (const path of ['/openid/v1', '/openid/v1/jwks/', '/.well-known']) {
    assert.equal(openIdDocument(path, key, ''), undefined);
  }
});

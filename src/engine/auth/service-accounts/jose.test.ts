/** Compares our service account tokens with jose: it verifies ours, and we verify or refuse the ones that it makes. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  exportJWK,
  jwtVerify,
  SignJWT,
  UnsecuredJWT,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
} from 'jose';
import { encodeClaims, ISSUER, type Claims } from '#engine/auth/service-accounts/claims.ts';
import { issueToken, signToken } from '#engine/auth/service-accounts/issuer.ts';
import { jsonWebKeySet } from '#engine/auth/service-accounts/openid.ts';
import { readToken } from '#engine/auth/service-accounts/read-token.ts';
import { newSigningKey } from '#engine/auth/service-accounts/signing-key.ts';

const key = newSigningKey();
const NOW_MS = Date.UTC(2030, 0, 1);
const keySet = createLocalJWKSet(jsonWebKeySet(key) as unknown as JSONWebKeySet);
const currentDate = new Date(NOW_MS + 1000);

const CLAIMS: Claims = {
  type: 'issued',
  namespace: 'ns',
  account: { name: 'robot', uid: 'u1' },
  audiences: ['a', 'b'],
  issuedAt: NOW_MS / 1000,
  expiresAt: NOW_MS / 1000 + 3600,
  id: 'j1',
  pod: { name: 'p', uid: 'u2' },
  secret: undefined,
  node: { name: 'n', uid: 'u3' },
};
const payload: JWTPayload = encodeClaims(CLAIMS);

test('jose verifies an issued token with our key set', async () => {
  const { namespace, account, audiences, pod, node } = CLAIMS;
  const spec = { namespace, account, audiences, pod, node, lifetimeSeconds: 3600 };
  const { token, id } = issueToken(key, spec, NOW_MS);
  const verified = await jwtVerify(token, keySet, {
    issuer: ISSUER,
    audience: 'b',
    algorithms: ['ES256'],
    currentDate,
  });
  assert.deepEqual(verified.protectedHeader, { alg: 'ES256', kid: key.id });
  assert.deepEqual(verified.payload, { ...payload, jti: id });
});

test('jose verifies the token of a secret', async () => {
  const claims = encodeClaims({ type: 'secret', namespace: 'ns', account: { name: 'a', uid: 'u' }, secretName: 's' });
  const verified = await jwtVerify(signToken(key, claims), keySet, { currentDate });
  assert.deepEqual(verified.payload, claims);
});

test('jose refuses our token when it has expired, is not valid yet, has another audience or another key', async () => {
  const token = signToken(key, payload);
  const at = (ms: number) => ({ currentDate: new Date(ms) });
  await assert.rejects(jwtVerify(token, keySet, at(NOW_MS + 3_601_000)), { code: 'ERR_JWT_EXPIRED' });
  await assert.rejects(jwtVerify(token, keySet, at(NOW_MS - 1000)), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED' });
  await assert.rejects(jwtVerify(token, keySet, { currentDate, audience: 'c' }), {
    code: 'ERR_JWT_CLAIM_VALIDATION_FAILED',
  });
  const others = createLocalJWKSet(jsonWebKeySet({ ...newSigningKey(), id: key.id }) as unknown as JSONWebKeySet);
  await assert.rejects(jwtVerify(token, others, { currentDate }), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
});

const signed = (header: JWTHeaderParameters, by: Parameters<SignJWT['sign']>[0] = key.privateKey) =>
  new SignJWT(payload).setProtectedHeader(header).sign(by);

const accepted: Record<string, JWTHeaderParameters> = {
  'with our key id': { alg: 'ES256', kid: key.id },
  'without a key id': { alg: 'ES256' },
  'with a type': { alg: 'ES256', kid: key.id, typ: 'JWT' },
};
for (const [name, header] of Object.entries(accepted)) {
  test(`accepts a token of jose ${name}`, async () => {
    assert.deepEqual(readToken(await signed(header), key), CLAIMS);
  });
}

const bytesOf = (text: string | Buffer) => new Uint8Array(Buffer.from(text));
const publicPem = key.publicKey.export({ type: 'spki', format: 'pem' });
const publicDer = key.publicKey.export({ type: 'spki', format: 'der' });
const { privateKey: rsaKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const { privateKey: p384Key } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
const { privateKey: edKey } = generateKeyPairSync('ed25519');
const kid = key.id;

/** Tokens with an algorithm of the attacker's choice, most of them under our key id. */
const confused: Record<string, () => Promise<string>> = {
  'HS256 with our public key as PEM': () => signed({ alg: 'HS256', kid }, bytesOf(publicPem)),
  'HS256 with our public key as DER': () => signed({ alg: 'HS256', kid }, bytesOf(publicDer)),
  'HS256 with our key set': async () =>
    signed({ alg: 'HS256', kid }, bytesOf(JSON.stringify(await exportJWK(key.publicKey)))),
  'HS384 with our public key': () => signed({ alg: 'HS384', kid }, bytesOf(publicPem)),
  'HS512 with our public key': () => signed({ alg: 'HS512', kid }, bytesOf(publicPem)),
  RS256: () => signed({ alg: 'RS256', kid }, rsaKey),
  PS256: () => signed({ alg: 'PS256', kid }, rsaKey),
  'ES384 with another key': () => signed({ alg: 'ES384', kid }, p384Key),
  EdDSA: () => signed({ alg: 'EdDSA', kid }, edKey),
  'ES256 with another key': () => signed({ alg: 'ES256', kid }, newSigningKey().privateKey),
  'ES256 with another key that the header contains': async () => {
    const own = newSigningKey();
    return signed({ alg: 'ES256', jwk: await exportJWK(own.publicKey) }, own.privateKey);
  },
  'ES256 with another key under another id': () => signed({ alg: 'ES256', kid: 'x' }, newSigningKey().privateKey),
  'ES256 with an unencoded payload': () => signed({ alg: 'ES256', kid, b64: true, crit: ['b64'] }),
};
for (const [name, make] of Object.entries(confused)) {
  test(`refuses a token of jose: ${name}`, async () => {
    const token = await make();
    assert.ok(decodeProtectedHeader(token).alg);
    const read = readToken(token, key);
    assert.ok(read !== undefined && 'refused' in read, JSON.stringify(read));
  });
}

test('a token without signature is not ours', () => {
  assert.equal(readToken(new UnsecuredJWT(payload).encode(), key), undefined);
});

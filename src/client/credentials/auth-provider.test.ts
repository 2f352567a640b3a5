import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAuthProvider } from '#client/credentials/auth-provider.ts';
import { CredentialError } from '#client/credentials/credential-source.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';

const clock = new FakeClock();
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const aToken = (claims: unknown) => `${encode({ alg: 'RS256' })}.${encode(claims)}.c2lnbmF0dXJl`;
const inSeconds = (seconds: number) => Math.floor(clock.now() / 1000) + seconds;
const oidc = (token: unknown) => ({ name: 'oidc', config: { 'id-token': token, 'refresh-token': 'secret' } });

test('uses the ID token of oidc until shortly before it expires', async () => {
  const own = new FakeClock();
  const token = aToken({ exp: Math.floor(own.now() / 1000) + 60 });
  const source = readAuthProvider(oidc(token), 'user "me"', own);
  assert.equal((await source.current()).token, token);
  await own.advance(50_000);
  await assert.rejects(source.current(), (error: Error) => {
    assert.ok(error instanceof CredentialError);
    assert.match(error.message, /its id-token expired on .*; use the exec plugin kubectl oidc-login/);
    return true;
  });
});

const refused: Record<string, { provider: unknown; want: RegExp }> = {
  gcp: { provider: { name: 'gcp' }, want: /"gcp" of user "me" .* is not supported; .*gke-gcloud-auth-plugin/ },
  azure: { provider: { name: 'azure' }, want: /is not supported; .*kubelogin convert-kubeconfig/ },
  openstack: { provider: { name: 'openstack' }, want: /is not supported; .*client-keystone-auth/ },
  'an unknown provider': { provider: { name: 'constructor' }, want: /is not supported; use an exec plugin/ },
  'a provider without a name': { provider: {}, want: /is not supported/ },
  'oidc without a token': { provider: { name: 'oidc' }, want: /it has no id-token; use the exec plugin/ },
  'an expired token': { provider: oidc(aToken({ exp: inSeconds(5) })), want: /its id-token expired on / },
  'a token without an expiry': { provider: oidc(aToken({})), want: /not a JWT with an expiry/ },
  'a token that is not a JWT': { provider: oidc('abc'), want: /not a JWT with an expiry/ },
  'a token with a line break': { provider: oidc(`${aToken({ exp: inSeconds(60) })}\n`), want: /not a JWT/ },
  'a token that is not a string': { provider: oidc(7), want: /id-token of auth-provider .* is not a string/ },
};
for (const [sentence, { provider, want }] of Object.entries(refused)) {
  test(`auth-provider: refuses ${sentence}`, () => {
    assert.throws(
      () => readAuthProvider(provider, 'user "me"', clock),
      (error: Error) => error instanceof KubeconfigError && want.test(error.message) && !/secret/.test(error.message),
    );
  });
}

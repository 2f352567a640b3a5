import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJobAccess, findJobName, type JobEnvironment } from '#transition/job-access.ts';

const OWN = { SELFSAME_API_SERVER: 'https://127.0.0.1:6443', SELFSAME_TOKEN_FILE: '/t', SELFSAME_CA_FILE: '/ca' };
const readFile = (path: string) => `content of ${path}`;

test('a pod on one of our nodes uses the SELFSAME variables', () => {
  assert.deepEqual(readJobAccess(OWN, readFile), {
    server: 'https://127.0.0.1:6443',
    namespace: '',
    certificateAuthority: 'content of /ca',
    tokenFile: '/t',
    insecureSkipTlsVerify: false,
  });
});

test('without a CA file the CAs of the system are trusted', () => {
  const { certificateAuthority } = readJobAccess({ ...OWN, SELFSAME_CA_FILE: undefined }, readFile);
  assert.equal(certificateAuthority, undefined);
});

test('a pod of another cluster uses the standard variables', () => {
  const { server } = readJobAccess({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }, readFile);
  assert.equal(server, 'https://10.0.0.1:443');
});

const errors: Record<string, { env: JobEnvironment; want: RegExp }> = {
  'no token': { env: { ...OWN, SELFSAME_TOKEN_FILE: '' }, want: /SELFSAME_TOKEN_FILE/ },
  'no TLS': { env: { ...OWN, SELFSAME_API_SERVER: 'http://x' }, want: /expected an https URL/ },
  nothing: { env: {}, want: /KUBERNETES_SERVICE_HOST/ },
};
for (const [name, { env, want }] of Object.entries(errors)) {
  test(`cannot reach the API: ${name}`, () => assert.throws(() => readJobAccess(env, readFile), want));
}

const token = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`;
const bound = token({ 'kubernetes.io': { namespace: 'sys', pod: { name: 'convert-machine-type-ab12c-x9k2p' } } });

test('the Job is that of the pod to which the token is bound, unless JOB_NAME is set', () => {
  assert.deepEqual(findJobName({}, bound), { namespace: 'sys', name: 'convert-machine-type-ab12c' });
  assert.deepEqual(findJobName({ JOB_NAME: 'mine' }, bound), { namespace: 'sys', name: 'mine' });
});

const strange = ['', 'x', 'a.b.c', token(null), token({}), token({ 'kubernetes.io': { namespace: 'sys' } })];
for (const text of strange) {
  test(`a token without a pod: ${JSON.stringify(text)}`, () => {
    assert.throws(() => findJobName({}, text), /its token is not bound to a pod/);
  });
}

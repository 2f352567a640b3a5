import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessOf, jobNameOf, type Environment } from '#transition/job-access.ts';

const OWN = { SELFSAME_API_SERVER: 'https://127.0.0.1:6443', SELFSAME_TOKEN_FILE: '/t', SELFSAME_CA_FILE: '/ca' };
const readFile = (path: string) => `what ${path} says`;

test('a pod on a node of ours is told where the API is', () => {
  assert.deepEqual(accessOf(OWN, readFile), {
    server: 'https://127.0.0.1:6443',
    namespace: '',
    certificateAuthority: 'what /ca says',
    tokenFile: '/t',
    insecureSkipTlsVerify: false,
  });
});

test('without an authority of its own it asks those of the system', () => {
  const { certificateAuthority } = accessOf({ ...OWN, SELFSAME_CA_FILE: undefined }, readFile);
  assert.equal(certificateAuthority, undefined);
});

test('a pod of any cluster finds it as all pods do', () => {
  const { server } = accessOf({ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }, readFile);
  assert.equal(server, 'https://10.0.0.1:443');
});

const faults: Record<string, { env: Environment; want: RegExp }> = {
  'no token': { env: { ...OWN, SELFSAME_TOKEN_FILE: '' }, want: /SELFSAME_TOKEN_FILE/ },
  'no TLS': { env: { ...OWN, SELFSAME_API_SERVER: 'http://x' }, want: /expected an https URL/ },
  nothing: { env: {}, want: /KUBERNETES_SERVICE_HOST/ },
};
for (const [name, { env, want }] of Object.entries(faults)) {
  test(`cannot reach the API: ${name}`, () => assert.throws(() => accessOf(env, readFile), want));
}

const token = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`;
const bound = token({ 'kubernetes.io': { namespace: 'sys', pod: { name: 'convert-machine-type-ab12c-x9k2p' } } });

test('the Job is that of the pod to which the token is bound, unless it is named', () => {
  assert.deepEqual(jobNameOf({}, bound), { namespace: 'sys', name: 'convert-machine-type-ab12c' });
  assert.deepEqual(jobNameOf({ JOB_NAME: 'mine' }, bound), { namespace: 'sys', name: 'mine' });
});

const strange = ['', 'x', 'a.b.c', token(null), token({}), token({ 'kubernetes.io': { namespace: 'sys' } })];
for (const text of strange) {
  test(`a token that tells of no pod: ${JSON.stringify(text)}`, () => {
    assert.throws(() => jobNameOf({}, text), /its token is not bound to a pod/);
  });
}

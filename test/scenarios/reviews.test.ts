/** Questions to the server: who am I, may I, may they, whose token is this. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MALLORY, startTestApi, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
before(async () => {
  api = await startTestApi({ tokens: (token) => (token === 'good' ? MALLORY : undefined) });
});
after(() => api.stop());

const AUTHN = '/apis/authentication.k8s.io/v1';
const AUTHZ = '/apis/authorization.k8s.io/v1';
const pods = { namespace: 'default', verb: 'get', resource: 'pods' };

function ask(path: string, kind: string, spec: Loose, options: CallOptions = {}) {
  const apiVersion = path.split('/').slice(2, 4).join('/');
  return api.call('POST', path, { body: { apiVersion, kind, ...(spec === undefined ? {} : { spec }) }, ...options });
}

const cases: Record<string, { ask: Parameters<typeof ask>; want: Loose }> = {
  'who am I': {
    ask: [`${AUTHN}/selfsubjectreviews`, 'SelfSubjectReview', undefined, { user: MALLORY }],
    want: { userInfo: { username: 'mallory', groups: ['system:authenticated'] } },
  },
  'may I, as an administrator': {
    ask: [`${AUTHZ}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', { resourceAttributes: pods }],
    want: { allowed: true },
  },
  'may I, as nobody in particular': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { resourceAttributes: pods },
      { user: MALLORY },
    ],
    want: { allowed: false },
  },
  'may I look at a path': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { nonResourceAttributes: { path: '/version', verb: 'get' } },
      { user: MALLORY },
    ],
    want: { allowed: true },
  },
  'may they': {
    ask: [
      `${AUTHZ}/subjectaccessreviews`,
      'SubjectAccessReview',
      { user: 'x', groups: ['system:masters'], resourceAttributes: pods },
    ],
    want: { allowed: true },
  },
  'may they, in this namespace': {
    ask: [
      `${AUTHZ}/namespaces/default/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', resourceAttributes: pods },
    ],
    want: { allowed: false },
  },
  'whose token is this': {
    ask: [`${AUTHN}/tokenreviews`, 'TokenReview', { token: 'good' }],
    want: { authenticated: true, user: { username: 'mallory', groups: ['system:authenticated'] } },
  },
  "a token that is nobody's": {
    ask: [`${AUTHN}/tokenreviews`, 'TokenReview', { token: 'bad' }],
    want: { user: {}, error: 'invalid bearer token' },
  },
};

for (const [name, { ask: question, want }] of Object.entries(cases)) {
  test(`answers: ${name}`, async () => {
    const before = api.store.revision;
    const { status, body } = await ask(...question);
    assert.deepEqual([status, body.status], [201, want]);
    assert.equal(api.store.revision, before, 'nothing is stored');
  });
}

const refused: Record<string, { ask: Parameters<typeof ask>; code: number; message: RegExp }> = {
  'a question about somebody else by somebody without rights': {
    ask: [
      `${AUTHZ}/subjectaccessreviews`,
      'SubjectAccessReview',
      { user: 'x', resourceAttributes: pods },
      { user: MALLORY },
    ],
    code: 403,
    message: /cannot create resource "subjectaccessreviews"/,
  },
  'no attributes': {
    ask: [`${AUTHZ}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {}],
    code: 422,
    message: /exactly one of nonResourceAttributes or resourceAttributes must be specified/,
  },
  'nobody to ask about': {
    ask: [`${AUTHZ}/subjectaccessreviews`, 'SubjectAccessReview', { resourceAttributes: pods }],
    code: 422,
    message: /at least one of user or group must be specified/,
  },
  "another namespace than the path's": {
    ask: [
      `${AUTHZ}/namespaces/kube-system/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', resourceAttributes: pods },
    ],
    code: 422,
    message: /must match metadata.namespace/,
  },
  'no token': { ask: [`${AUTHN}/tokenreviews`, 'TokenReview', {}], code: 422, message: /token is required/ },
};

for (const [name, { ask: question, code, message }] of Object.entries(refused)) {
  test(`refuses ${name}`, async () => {
    const { status, body } = await ask(...question);
    assert.equal(status, code, JSON.stringify(body));
    assert.match(body.message, message);
  });
}

test('a review cannot be listed', async () => {
  assert.equal((await api.call('GET', `${AUTHN}/tokenreviews`)).status, 405);
});

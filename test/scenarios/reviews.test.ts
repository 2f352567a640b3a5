/** Reviews: who am I, may I, may they, what may I, whose token is this. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { MALLORY, startTestApi, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
before(async () => {
  api = await startTestApi({ tokens: (token) => (token === 'good' ? MALLORY : undefined) });
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const rules = [{ apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get'] }];
  await api.ok('POST', `${rbac}/clusterroles`, {
    body: { apiVersion, kind: 'ClusterRole', metadata: { name: 'pod-reader' }, rules },
  });
  for (const [name, role] of [
    ['reads', 'pod-reader'],
    ['dangles', 'no-such'],
  ]) {
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role };
    const subjects = [{ kind: 'User', name: 'rita' }];
    await api.ok('POST', `${rbac}/namespaces/default/rolebindings`, {
      body: { apiVersion, kind: 'RoleBinding', metadata: { name }, roleRef, subjects },
    });
  }
});
after(() => api.stop());

const AUTHN = '/apis/authentication.k8s.io/v1';
const AUTHZ = '/apis/authorization.k8s.io/v1';
const RITA = { name: 'rita', groups: ['system:authenticated'] };
const pods = { namespace: 'default', verb: 'get', resource: 'pods' };

function postReview(path: string, kind: string, spec: Loose, options: CallOptions = {}) {
  const apiVersion = path.split('/').slice(2, 4).join('/');
  return api.call('POST', path, { body: { apiVersion, kind, ...(spec === undefined ? {} : { spec }) }, ...options });
}

const cases: Record<string, { ask: Parameters<typeof postReview>; want: Loose }> = {
  'who am I': {
    ask: [`${AUTHN}/selfsubjectreviews`, 'SelfSubjectReview', undefined, { user: MALLORY }],
    want: { userInfo: { username: 'mallory', groups: ['system:authenticated'] } },
  },
  'may I, as an administrator': {
    ask: [`${AUTHZ}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', { resourceAttributes: pods }],
    want: { allowed: true },
  },
  'may I, as a user without roles': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { resourceAttributes: pods },
      { user: MALLORY },
    ],
    want: { allowed: false },
  },
  'may I read a path': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { nonResourceAttributes: { path: '/version', verb: 'get' } },
      { user: MALLORY },
    ],
    want: {
      allowed: true,
      reason:
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"',
    },
  },
  'may I, with a role': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { resourceAttributes: { ...pods, subresource: 'log', name: 'p' } },
      { user: RITA },
    ],
    want: {
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "reads/default" of ClusterRole "pod-reader" to User "rita"',
    },
  },
  'may I, without a role': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { resourceAttributes: { ...pods, verb: 'list' } },
      { user: RITA },
    ],
    want: { allowed: false, reason: 'RBAC: clusterrole.rbac.authorization.k8s.io "no-such" not found' },
  },
  'may I, with a selector': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      {
        resourceAttributes: {
          ...pods,
          fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n'] }] },
          labelSelector: { rawSelector: 'a=b' },
        },
      },
      { user: RITA },
    ],
    want: {
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "reads/default" of ClusterRole "pod-reader" to User "rita"',
    },
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
    want: {
      authenticated: true,
      user: { username: 'mallory', groups: ['system:authenticated'] },
      audiences: ['https://kubernetes.default.svc'],
    },
  },
  'an unknown token': {
    ask: [`${AUTHN}/tokenreviews`, 'TokenReview', { token: 'bad' }],
    want: { user: {}, error: 'invalid bearer token' },
  },
};

for (const [name, { ask: question, want }] of Object.entries(cases)) {
  test(`answers: ${name}`, async () => {
    const before = api.store.revision;
    const { status, body } = await postReview(...question);
    assert.deepEqual([status, body.status], [201, want]);
    assert.equal(api.store.revision, before, 'nothing is stored');
  });
}

test('answers: what may I', async () => {
  const listRules = async (namespace: string): Promise<Loose> => {
    const question = `${AUTHZ}/selfsubjectrulesreviews`;
    const { status, body } = await postReview(question, 'SelfSubjectRulesReview', { namespace }, { user: RITA });
    assert.equal(status, 201, JSON.stringify(body));
    return body.status;
  };
  const readsPods = { verbs: ['get'], apiGroups: [''], resources: ['pods', 'pods/log'] };
  const has = (rules: Loose[], wanted: object) => rules.some((rule) => isDeepStrictEqual(rule, wanted));

  const here = await listRules('default');
  assert.ok(has(here.resourceRules, readsPods), JSON.stringify(here));
  assert.equal(here.incomplete, false);
  assert.equal(here.evaluationError, 'clusterrole.rbac.authorization.k8s.io "no-such" not found');
  assert.ok(
    JSON.stringify(here.resourceRules).includes('selfsubjectrulesreviews'),
    'the rules that everybody has are included',
  );
  assert.ok(here.nonResourceRules.some(({ nonResourceURLs }: Loose) => nonResourceURLs.includes('/openapi/*')));

  const elsewhere = await listRules('kube-system');
  assert.ok(!has(elsewhere.resourceRules, readsPods));
  assert.equal(elsewhere.evaluationError, undefined);
});

const refused: Record<string, { ask: Parameters<typeof postReview>; code: number; message: RegExp }> = {
  'a question about another user by a user without permission': {
    ask: [
      `${AUTHZ}/subjectaccessreviews`,
      'SubjectAccessReview',
      { user: 'x', resourceAttributes: pods },
      { user: MALLORY },
    ],
    code: 403,
    message: /cannot create resource "subjectaccessreviews"/,
  },
  'a review without attributes': {
    ask: [`${AUTHZ}/selfsubjectaccessreviews`, 'SelfSubjectAccessReview', {}],
    code: 422,
    message: /exactly one of nonResourceAttributes or resourceAttributes must be specified/,
  },
  'a review with attributes of both kinds': {
    ask: [
      `${AUTHZ}/selfsubjectaccessreviews`,
      'SelfSubjectAccessReview',
      { resourceAttributes: pods, nonResourceAttributes: { path: '/x', verb: 'get' } },
    ],
    code: 422,
    message: /spec.nonResourceAttributes: .*cannot be specified in combination with resourceAttributes/,
  },
  'a review with a path in a namespace': {
    ask: [
      `${AUTHZ}/namespaces/default/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', nonResourceAttributes: { path: '/x', verb: 'get' } },
    ],
    code: 422,
    message: /spec.nonResourceAttributes: .*disallowed on this kind of request/,
  },
  'a rules review without a namespace': {
    ask: [`${AUTHZ}/selfsubjectrulesreviews`, 'SelfSubjectRulesReview', {}],
    code: 400,
    message: /no namespace on request/,
  },
  'a review without a user': {
    ask: [`${AUTHZ}/subjectaccessreviews`, 'SubjectAccessReview', { resourceAttributes: pods }],
    code: 422,
    message: /at least one of user or group must be specified/,
  },
  'a namespace that differs from the path': {
    ask: [
      `${AUTHZ}/namespaces/kube-system/localsubjectaccessreviews`,
      'LocalSubjectAccessReview',
      { user: 'x', resourceAttributes: pods },
    ],
    code: 422,
    message: /must match metadata.namespace/,
  },
  'a review without a token': {
    ask: [`${AUTHN}/tokenreviews`, 'TokenReview', {}],
    code: 400,
    message: /token is required/,
  },
};

for (const [name, { ask: question, code, message }] of Object.entries(refused)) {
  test(`refuses ${name}`, async () => {
    const { status, body } = await postReview(...question);
    assert.equal(status, code, JSON.stringify(body));
    assert.match(body.message, message);
  });
}

test('a review cannot be listed', async () => {
  assert.equal((await api.call('GET', `${AUTHN}/tokenreviews`)).status, 405);
});

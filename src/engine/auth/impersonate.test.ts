import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Authorizer } from '#engine/auth/authorize.ts';
import { applyImpersonation } from '#engine/auth/impersonate.ts';
import type { ApiRequest, UserInfo } from '#engine/request/request.ts';
import { ApiError } from '#kube/api-error.ts';

const BOSS: UserInfo = { name: 'boss', uid: 'u', groups: ['bosses'], extra: { a: ['b'] } };

function request(headers: Readonly<Record<string, string>>): ApiRequest {
  return {
    method: 'GET',
    path: '/api/v1/pods',
    query: new URLSearchParams(),
    user: BOSS,
    accept: 'application/json',
    contentType: '',
    userAgent: 'test',
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
    body: async () => Buffer.from('body'),
    get signal(): AbortSignal {
      return AbortSignal.abort();
    },
  };
}

/** Records the requests to authorize, and allows all except the listed ones. */
function recordingAuthorizer(refused: readonly string[] = []) {
  const requests: string[] = [];
  const authorizer: Authorizer = {
    authorize(user, attributes) {
      assert.equal(user, BOSS, 'the real user must be authorized');
      assert.ok(!('path' in attributes));
      const { verb, group, resource, subresource, namespace, name } = attributes;
      assert.equal(verb, 'impersonate');
      const what = `${group}:${resource}${subresource && `/${subresource}`} ${namespace && `${namespace}/`}${name}`;
      requests.push(what);
      return { allowed: !refused.includes(what), reason: 'because' };
    },
  };
  return { authorizer, requests };
}

interface Case {
  readonly headers: Record<string, string>;
  readonly requests: string[];
  readonly user: UserInfo;
}

const cases: Record<string, Case> = {
  'a user': {
    headers: { 'impersonate-user': 'bob' },
    requests: [':users bob'],
    user: { name: 'bob', groups: ['system:authenticated'] },
  },
  'a user with groups': {
    headers: { 'impersonate-user': 'bob', 'impersonate-group': 'a, b' },
    requests: [':users bob', ':groups a', ':groups b'],
    user: { name: 'bob', groups: ['a', 'b', 'system:authenticated'] },
  },
  'a group with a comma in its name': {
    headers: { 'impersonate-user': 'bob', 'impersonate-group': 'cn=x,ou=y' },
    requests: [':users bob', ':groups cn=x,ou=y'],
    user: { name: 'bob', groups: ['cn=x,ou=y', 'system:authenticated'] },
  },
  'groups that include system:authenticated': {
    headers: { 'impersonate-user': 'bob', 'impersonate-group': 'system:authenticated' },
    requests: [':users bob', ':groups system:authenticated'],
    user: { name: 'bob', groups: ['system:authenticated'] },
  },
  'a user with system:unauthenticated': {
    headers: { 'impersonate-user': 'bob', 'impersonate-group': 'system:unauthenticated' },
    requests: [':users bob', ':groups system:unauthenticated'],
    user: { name: 'bob', groups: ['system:unauthenticated'] },
  },
  'the anonymous user': {
    headers: { 'impersonate-user': 'system:anonymous' },
    requests: [':users system:anonymous'],
    user: { name: 'system:anonymous', groups: ['system:unauthenticated'] },
  },
  'a service account': {
    headers: { 'impersonate-user': 'system:serviceaccount:ns:robot' },
    requests: [':serviceaccounts ns/robot'],
    user: {
      name: 'system:serviceaccount:ns:robot',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
    },
  },
  'a service account with explicit groups only': {
    headers: { 'impersonate-user': 'system:serviceaccount:ns:robot', 'impersonate-group': 'a' },
    requests: [':serviceaccounts ns/robot', ':groups a'],
    user: { name: 'system:serviceaccount:ns:robot', groups: ['a', 'system:authenticated'] },
  },
  'a user whose name only resembles a service account': {
    headers: { 'impersonate-user': 'system:serviceaccount:ns:robot:x' },
    requests: [':users system:serviceaccount:ns:robot:x'],
    user: { name: 'system:serviceaccount:ns:robot:x', groups: ['system:authenticated'] },
  },
  'a service account of an invalid namespace': {
    headers: { 'impersonate-user': 'system:serviceaccount:N_S:robot' },
    requests: [':users system:serviceaccount:N_S:robot'],
    user: { name: 'system:serviceaccount:N_S:robot', groups: ['system:authenticated'] },
  },
  'a uid': {
    headers: { 'impersonate-user': 'bob', 'impersonate-uid': '42' },
    requests: [':users bob', 'authentication.k8s.io:uids 42'],
    user: { name: 'bob', groups: ['system:authenticated'], uid: '42' },
  },
  'extras with escaped keys': {
    headers: {
      'impersonate-user': 'bob',
      'impersonate-extra-scopes': 'view, edit',
      'impersonate-extra-example.com%2fproject': 'x',
      'impersonate-extra-%zz': 'y',
      'x-other': 'z',
    },
    requests: [
      ':users bob',
      'authentication.k8s.io:userextras/scopes view',
      'authentication.k8s.io:userextras/scopes edit',
      'authentication.k8s.io:userextras/example.com/project x',
      'authentication.k8s.io:userextras/%zz y',
    ],
    user: {
      name: 'bob',
      groups: ['system:authenticated'],
      extra: { scopes: ['view', 'edit'], 'example.com/project': ['x'], '%zz': ['y'] },
    },
  },
};

for (const [name, { headers, requests, user }] of Object.entries(cases)) {
  test(`impersonates ${name}`, () => {
    const recording = recordingAuthorizer();
    const acting = applyImpersonation(request(headers), recording.authorizer);
    assert.deepEqual([acting.user, recording.requests], [user, requests]);
  });

  for (const [i, what] of requests.entries()) {
    test(`does not impersonate ${name} without permission for ${what}`, () => {
      const recording = recordingAuthorizer([what]);
      assert.throws(() => applyImpersonation(request(headers), recording.authorizer), {
        code: 403,
        reason: 'Forbidden',
      });
      assert.deepEqual(recording.requests, requests.slice(0, i + 1));
    });
  }
}

test('a request without impersonation is not changed', () => {
  const { authorizer, requests } = recordingAuthorizer();
  const plain = request({ 'x-other': 'a', 'x-extra': 'view' });
  assert.equal(applyImpersonation(plain, authorizer), plain);
  const { header: _, ...bare } = plain;
  assert.equal(applyImpersonation(bare, authorizer), bare);
  assert.deepEqual(requests, []);
});

test('a key that is a prototype property is an ordinary key', () => {
  const acting = applyImpersonation(
    request({ 'impersonate-user': 'bob', 'impersonate-extra-__proto__': 'x' }),
    recordingAuthorizer().authorizer,
  );
  assert.equal(Object.getPrototypeOf(acting.user.extra), Object.prototype);
  assert.deepEqual(Object.entries(acting.user.extra ?? {}), [['__proto__', ['x']]]);
});

test('the impersonation headers are removed and the others kept', async () => {
  const headers = { 'impersonate-user': 'bob', 'impersonate-group': 'a', 'x-other': 'b' };
  const acting = applyImpersonation(request(headers), recordingAuthorizer().authorizer);
  assert.equal(acting.header?.('impersonate-user'), undefined);
  assert.equal(acting.header?.('x-other'), 'b');
  assert.deepEqual(acting.headerNames?.(), ['x-other']);
  assert.equal((await acting.body()).toString(), 'body');
  assert.equal(acting.signal.aborted, true);
  assert.deepEqual([acting.method, acting.path, acting.accept], ['GET', '/api/v1/pods', 'application/json']);
});

const refusals: Record<string, [headers: Record<string, string>, refused: string, message: string]> = {
  'a user': [
    { 'impersonate-user': 'bob' },
    ':users bob',
    'users "bob" is forbidden: User "boss" cannot impersonate resource "users" in API group "" at the cluster scope: because',
  ],
  'a service account': [
    { 'impersonate-user': 'system:serviceaccount:ns:robot' },
    ':serviceaccounts ns/robot',
    'serviceaccounts "robot" is forbidden: User "boss" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns": because',
  ],
  'an extra': [
    { 'impersonate-user': 'bob', 'impersonate-extra-scopes': 'view' },
    'authentication.k8s.io:userextras/scopes view',
    'userextras.authentication.k8s.io "view" is forbidden: User "boss" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope: because',
  ],
};

for (const [name, [headers, refused, message]] of Object.entries(refusals)) {
  test(`has Kubernetes' message for the refusal of ${name}`, () => {
    assert.throws(() => applyImpersonation(request(headers), recordingAuthorizer([refused]).authorizer), { message });
  });
}

const withoutUser: Record<string, [headers: Record<string, string>, shown: string]> = {
  groups: [{ 'impersonate-group': 'a, b' }, '{Group  a    } {Group  b    }'],
  'a uid': [{ 'impersonate-uid': '42' }, '{UID  42  authentication.k8s.io/v1  }'],
};

for (const [name, [headers, shown]] of Object.entries(withoutUser)) {
  test(`refuses ${name} without a user`, () => {
    const expected = `Internal Server Error: "/api/v1/pods": requested [${shown}] without impersonating a user`;
    assert.throws(
      () => applyImpersonation(request(headers), recordingAuthorizer().authorizer),
      (error) => error instanceof ApiError && error.code === 500 && error.message === expected,
    );
  });
}

test('extras without a user are refused', () => {
  const { authorizer, requests } = recordingAuthorizer();
  assert.throws(() => applyImpersonation(request({ 'impersonate-extra-scopes': 'view' }), authorizer), ApiError);
  assert.deepEqual(requests, []);
});

test('an empty extra value must be authorized', () => {
  const { authorizer, requests } = recordingAuthorizer();
  const { user, impersonator } = applyImpersonation(
    request({ 'impersonate-user': 'bob', 'impersonate-extra-scopes': '' }),
    authorizer,
  );
  assert.deepEqual(requests, [':users bob', 'authentication.k8s.io:userextras/scopes ']);
  assert.deepEqual(user.extra, { scopes: [''] });
  assert.equal(impersonator, BOSS, 'the audit record must contain the real user');
});

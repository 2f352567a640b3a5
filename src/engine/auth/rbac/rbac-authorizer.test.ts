import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { rbacAuthorizer, type RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import {
  aBinding,
  aRole,
  parseAttributes,
  putPolicy,
  removePolicy,
  storeOf,
} from '#engine/auth/rbac/testing/policy-store.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';

const POLICY = [
  aRole('pod-reader', { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }),
  aRole('log-reader', { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }),
  aRole('scaler', { apiGroups: ['*'], resources: ['*/scale'], verbs: ['get', 'update'] }),
  aRole('two-maps', {
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: ['one', 'two'],
    verbs: ['get', 'update', 'create', 'list', 'deletecollection'],
  }),
  aRole('apps-owner', { apiGroups: ['apps'], resources: ['*'], verbs: ['*'] }),
  aRole('any-getter', { apiGroups: ['*'], resources: ['*'], verbs: ['get'] }),
  aRole(
    'two-rules',
    { apiGroups: ['a'], resources: ['x'], verbs: ['get'] },
    { apiGroups: ['b'], resources: ['y'], verbs: ['list'] },
  ),
  aRole('monitor', { nonResourceURLs: ['/metrics', '/logs/*', '/star**'], verbs: ['get'] }),
  aRole('any-path', { nonResourceURLs: ['*'], verbs: ['*'] }),
  aRole('a/local', { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }),
  aRole('b/local', { apiGroups: [''], resources: ['secrets'], verbs: ['delete'] }),
  aRole('empty'),

  aBinding('readers', 'ClusterRole/pod-reader', 'User rita', 'Group readers', 'ServiceAccount kube-system/robot'),
  aBinding('a/readers', 'ClusterRole/pod-reader', 'User anna', 'ServiceAccount robot', 'ServiceAccount b/visitor'),
  aBinding('logs', 'ClusterRole/log-reader', 'User rita'),
  aBinding('scalers', 'ClusterRole/scaler', 'User sven'),
  aBinding('a/maps', 'ClusterRole/two-maps', 'User anna'),
  aBinding('apps', 'ClusterRole/apps-owner', 'User otto'),
  aBinding('getters', 'ClusterRole/any-getter', 'User gert'),
  aBinding('two', 'ClusterRole/two-rules', 'User otto'),
  aBinding('monitors', 'ClusterRole/monitor', 'Group monitors'),
  aBinding('paths', 'ClusterRole/any-path', 'User pat'),
  aBinding('a/paths', 'ClusterRole/any-path', 'User anna'),
  aBinding('a/local', 'Role/local', 'User anna'),
  aBinding('b/local', 'Role/local', 'User anna', 'Group system:serviceaccounts:b'),
  aBinding('nothing', 'ClusterRole/empty', 'User emma'),
  aBinding('gone', 'ClusterRole/no-such', 'User mona'),
  aBinding('gone-again', 'ClusterRole/no-such', 'Group missing'),
  aBinding('a/gone', 'Role/no-such-here', 'User mona'),
  aBinding('nobody', 'ClusterRole/any-path', 'ServiceAccount homeless', 'Robot r2'),
];

let store: Store;
let rbac: RbacAuthorizer;
before(async () => {
  store = await storeOf(...POLICY);
  rbac = rbacAuthorizer(store);
});
after(async () => {
  rbac.stop();
  await store.close();
});

/** Parses `rita`, or with groups `x readers monitors`. */
function userFrom(text: string): UserInfo {
  const [name = '', ...groups] = text.split(' ');
  return { name, groups };
}

const by = (binding: string) => `RBAC: allowed by ${binding}`;
const RITA = by('ClusterRoleBinding "readers" of ClusterRole "pod-reader" to User "rita"');
const ANNA_READS = by('RoleBinding "readers/a" of ClusterRole "pod-reader" to User "anna"');
const OTTO = by('ClusterRoleBinding "apps" of ClusterRole "apps-owner" to User "otto"');

/** The user, the request, and the reason; undefined = allowed without one, false = refused without one. */
const cases: Record<string, [who: string, what: string, want: string | false | undefined, refused?: 'refused']> = {
  // Cluster-wide bindings
  'a listed verb': ['rita', 'get pods in a named p', RITA],
  'another listed verb': ['rita', 'watch pods in b', RITA],
  'across all namespaces': ['rita', 'list pods', RITA],
  'an unlisted verb': ['rita', 'delete pods in a named p', false],
  'verbs are case-sensitive': ['rita', 'GET pods in a named p', false],
  'an unlisted resource': ['rita', 'get nodes named n', false],
  'a resource with a listed one as prefix': ['rita', 'get podsets in a', false],
  'the same resource of another group': ['rita', 'get metrics.k8s.io:pods in a', false],
  'a role without rules': ['emma', 'get pods in a', false],
  'a user without bindings': ['nemo', 'get pods in a', false],
  'user names are case-sensitive': ['Rita', 'get pods in a', false],

  // Subjects
  'a member of a bound group': [
    'x readers',
    'get pods in a',
    by('ClusterRoleBinding "readers" of ClusterRole "pod-reader" to Group "readers"'),
  ],
  'the second of the groups': [
    'x others readers',
    'get pods in a',
    by('ClusterRoleBinding "readers" of ClusterRole "pod-reader" to Group "readers"'),
  ],
  'a user with the name of a group': ['readers', 'get pods in a', false],
  'a group with the name of a user': ['x rita', 'get pods in a', false],
  'a service account': [
    'system:serviceaccount:kube-system:robot',
    'get pods in a',
    by('ClusterRoleBinding "readers" of ClusterRole "pod-reader" to ServiceAccount "robot/kube-system"'),
  ],
  'an account of that name in another namespace': ['system:serviceaccount:default:robot', 'get pods in c', false],
  'a user with the short name of an account': ['robot', 'get pods in a', false],
  "an account without namespace is the binding's": [
    'system:serviceaccount:a:robot',
    'list pods in a',
    by('RoleBinding "readers/a" of ClusterRole "pod-reader" to ServiceAccount "robot/a"'),
  ],
  'an account of another namespace': [
    'system:serviceaccount:b:visitor',
    'list pods in a',
    by('RoleBinding "readers/a" of ClusterRole "pod-reader" to ServiceAccount "visitor/b"'),
  ],
  'the same account in its own namespace': ['system:serviceaccount:b:visitor', 'list pods in b', false],
  'the accounts of a namespace as a group': [
    'system:serviceaccount:b:x system:serviceaccounts system:serviceaccounts:b',
    'delete secrets in b named s',
    by('RoleBinding "local/b" of Role "local" to Group "system:serviceaccounts:b"'),
  ],
  'an account without namespace matches no user': ['system:serviceaccount::homeless', 'get /x', false],
  'a subject of an unknown kind matches no user': ['r2', 'get /x', false],

  // Bindings in a namespace
  'a cluster role in a namespace': ['anna', 'get pods in a named p', ANNA_READS],
  'a cluster role bound in another namespace': ['anna', 'get pods in b named p', false],
  'a list across all namespaces': ['anna', 'list pods', false],
  'a role of the namespace': [
    'anna',
    'get secrets in a named s',
    by('RoleBinding "local/a" of Role "local" to User "anna"'),
  ],
  'roles of the same name in two namespaces differ': ['anna', 'delete secrets in a named s', false],
  'each role applies in its own namespace': [
    'anna',
    'delete secrets in b named s',
    by('RoleBinding "local/b" of Role "local" to User "anna"'),
  ],
  'a namespace with a bound one as prefix': ['anna', 'get pods in ab', false],

  // Subresources
  'a listed subresource': [
    'rita',
    'get pods/log in a named p',
    by('ClusterRoleBinding "logs" of ClusterRole "log-reader" to User "rita"'),
  ],
  'a resource does not include its subresources': ['rita', 'get pods/status in a named p', false],
  'a subresource does not include its resource': ['sven', 'get apps:deployments in a named d', false],
  'a subresource of all resources': [
    'sven',
    'update apps:deployments/scale in a named d',
    by('ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "sven"'),
  ],
  'a subresource of unknown kinds': [
    'sven',
    'get x.example.com:widgets/scale in a named w',
    by('ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "sven"'),
  ],
  'another subresource of all resources': ['sven', 'update apps:deployments/status in a named d', false],
  'a subresource with a listed one as suffix': ['sven', 'get apps:deployments/upscale in a named d', false],

  // Names
  'a listed name': [
    'anna',
    'update configmaps in a named one',
    by('RoleBinding "maps/a" of ClusterRole "two-maps" to User "anna"'),
  ],
  'another listed name': [
    'anna',
    'get configmaps in a named two',
    by('RoleBinding "maps/a" of ClusterRole "two-maps" to User "anna"'),
  ],
  'an unlisted name': ['anna', 'update configmaps in a named three', false],
  'a create has no name': ['anna', 'create configmaps in a', false],
  'a list has no name': ['anna', 'list configmaps in a', false],
  'a list by name': [
    'anna',
    'list configmaps in a named one',
    by('RoleBinding "maps/a" of ClusterRole "two-maps" to User "anna"'),
  ],
  'a deletecollection has no name': ['anna', 'deletecollection configmaps in a', false],

  // Wildcards
  'any resource of a group': ['otto', 'create apps:anything in a', OTTO],
  'any subresource of a group': ['otto', 'patch apps:anything/else in a named x', OTTO],
  'any verb, including unknown ones': ['otto', 'juggle apps:deployments in a named x', OTTO],
  'any resource, but of that group only': ['otto', 'create batch:jobs in a', false],
  'any resource of one group excludes the core group': ['otto', 'get pods in a', false],
  'any resource of any group': [
    'gert',
    'get x.example.com:widgets/status named w',
    by('ClusterRoleBinding "getters" of ClusterRole "any-getter" to User "gert"'),
  ],
  'any resource, but only that verb': ['gert', 'list pods', false],
  'all resources exclude paths': ['gert', 'get /metrics', false],
  'rules of one role are not combined': ['otto', 'get b:y', false],
  'verbs of one role are not combined': ['otto', 'list a:x', false],
  'the second rule of a role': [
    'otto',
    'list b:y',
    by('ClusterRoleBinding "two" of ClusterRole "two-rules" to User "otto"'),
  ],

  // Paths
  'a path': [
    'x monitors',
    'get /metrics',
    by('ClusterRoleBinding "monitors" of ClusterRole "monitor" to Group "monitors"'),
  ],
  'a path with another verb': ['x monitors', 'post /metrics', false],
  'a path below it': ['x monitors', 'get /metrics/slis', false],
  'a path below a star': [
    'x monitors',
    'get /logs/a/b',
    by('ClusterRoleBinding "monitors" of ClusterRole "monitor" to Group "monitors"'),
  ],
  'the path above the star': ['x monitors', 'get /logs', false],
  'stars at the end are one': [
    'x monitors',
    'get /starlight',
    by('ClusterRoleBinding "monitors" of ClusterRole "monitor" to Group "monitors"'),
  ],
  'any path with any verb': [
    'pat',
    'delete /anything',
    by('ClusterRoleBinding "paths" of ClusterRole "any-path" to User "pat"'),
  ],
  'all paths exclude resources': ['pat', 'get pods in a', false],
  'a role binding grants no paths': ['anna', 'get /metrics', false],

  // system:masters
  'a member of system:masters may do everything': ['root system:masters', 'juggle x:y/z in a named b', undefined],
  'a member of system:masters may use any path': ['root system:masters', 'delete /x', undefined],
  'a user of that name has no permissions': ['system:masters', 'get pods in a', false],

  // Missing roles
  'a missing cluster role': [
    'mona',
    'get pods',
    'RBAC: clusterrole.rbac.authorization.k8s.io "no-such" not found',
    'refused',
  ],
  'several missing roles': [
    'mona',
    'get pods in a',
    'RBAC: [clusterrole.rbac.authorization.k8s.io "no-such" not found, role.rbac.authorization.k8s.io "no-such-here" not found]',
    'refused',
  ],
  'a role that is missing twice': [
    'mona missing',
    'get pods in b',
    'RBAC: clusterrole.rbac.authorization.k8s.io "no-such" not found',
    'refused',
  ],
  'a missing role does not hide existing ones': ['rita missing', 'get pods in a', RITA],
};

for (const [name, [who, what, want, refused]] of Object.entries(cases)) {
  test(`authorizes: ${name}`, () => {
    const allowed = want !== false && refused === undefined;
    const reason = want === false ? undefined : want;
    const decision = rbac.authorize(userFrom(who), parseAttributes(what));
    assert.deepEqual([decision.allowed, decision.reason], [allowed, reason]);
  });
}

test('the table has all cases', () => assert.ok(Object.keys(cases).length >= 60));

test('follows the store write by write', async () => {
  const own = await storeOf();
  const authorizer = rbacAuthorizer(own);
  const may = (what: string) => authorizer.authorize(userFrom('bob team'), parseAttributes(what)).allowed;
  const reads = (...resources: string[]) => ({ apiGroups: [''], resources, verbs: ['get'] });

  await putPolicy(own, aBinding('b', 'ClusterRole/r', 'User bob'));
  assert.equal(may('get pods'), false, 'the role does not exist yet');
  await putPolicy(own, aRole('r', reads('pods')));
  assert.equal(may('get pods'), true, 'the role was created after its binding');
  await putPolicy(own, aRole('r', reads('nodes')));
  assert.deepEqual([may('get pods'), may('get nodes')], [false, true], 'the role has changed');
  await putPolicy(own, aBinding('b', 'ClusterRole/r', 'User eve'));
  assert.equal(may('get nodes'), false, 'the binding has other subjects');
  await putPolicy(own, aBinding('x/b', 'ClusterRole/r', 'Group team', 'User bob'));
  assert.deepEqual([may('get nodes in x'), may('get nodes')], [true, false]);
  await removePolicy(own, aBinding('x/b', 'ClusterRole/r', 'Group team', 'User bob'));
  assert.equal(may('get nodes in x'), false, 'the binding was deleted');
  await putPolicy(own, aBinding('b', 'ClusterRole/r', 'Group team'));
  await removePolicy(own, aRole('r'));
  assert.equal(may('get nodes'), false, 'the role was deleted');

  authorizer.stop();
  await putPolicy(own, aRole('r', reads('nodes')));
  assert.equal(may('get nodes'), false, 'it was stopped');
  await own.close();
});

test('a write that is not durable yet grants nothing', async () => {
  const own = await storeOf(aBinding('b', 'ClusterRole/r', 'User bob'));
  const authorizer = rbacAuthorizer(own);
  const writing = putPolicy(own, aRole('r', { apiGroups: [''], resources: ['pods'], verbs: ['get'] }));
  const may = () => authorizer.authorize(userFrom('bob'), parseAttributes('get pods')).allowed;
  assert.equal(may(), false);
  await writing;
  assert.equal(may(), true);
  authorizer.stop();
  await own.close();
});

test('lists the permissions of a user in a namespace without duplicates', () => {
  const list = rbac.rulesFor(userFrom('anna readers monitors missing'), 'a');
  assert.deepEqual(list, {
    resourceRules: [
      { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods'], resourceNames: undefined },
      { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: undefined },
      {
        verbs: ['get', 'update', 'create', 'list', 'deletecollection'],
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['one', 'two'],
      },
    ],
    nonResourceRules: [
      { verbs: ['get'], nonResourceURLs: ['/metrics', '/logs/*', '/star**'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
    incomplete: false,
    evaluationError: 'clusterrole.rbac.authorization.k8s.io "no-such" not found',
  });
});

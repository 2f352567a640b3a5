import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ANONYMOUS_USER } from '#engine/auth/groups.ts';
import { CONTROLLER_ACCOUNTS } from '#engine/auth/rbac/defaults/controller-roles.ts';
import { DEFAULT_POLICY } from '#engine/auth/rbac/defaults/default-policy.ts';
import type { RbacClusterRole } from '#engine/auth/rbac/policy.ts';
import { rbacAuthorizer, type RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { aBinding, parseAttributes, storeOf } from '#engine/auth/rbac/testing/policy-store.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import { decideAggregation } from '#engine/controllers/rbac/cluster-role-aggregation.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { reviewResources } from '#engine/registry/kinds/access/reviews.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

const { clusterRoles, clusterRoleBindings, roles, roleBindings } = DEFAULT_POLICY;

let store: Store;
let rbac: RbacAuthorizer;
before(async () => {
  store = await storeOf(
    ...clusterRoles,
    ...clusterRoleBindings,
    ...roles,
    ...roleBindings,
    aBinding('a/admin', 'ClusterRole/admin', 'User adam'),
    aBinding('a/edit', 'ClusterRole/edit', 'User edda'),
    aBinding('a/view', 'ClusterRole/view', 'User vera'),
    aBinding('root', 'ClusterRole/cluster-admin', 'User root'),
  );
  rbac = rbacAuthorizer(store);
});
after(async () => {
  rbac.stop();
  await store.close();
});

const may = (user: UserInfo, what: string) => rbac.authorize(user, parseAttributes(what)).allowed;
const person = (name: string, ...groups: string[]): UserInfo => ({ name, groups: ['system:authenticated', ...groups] });
const controller = (name: string) => serviceAccountUser('kube-system', { name, uid: '' });

const served: readonly Resource[] = [...builtInResources, ...reviewResources, customResourceDefinitions];

const CLUSTER = 'is cluster-scoped, so it is left to cluster-admin';
const SYSTEM = 'is written by the system, and its state is read with its resource';

const LEFT_OUT: Readonly<Record<string, string>> = {
  nodes: CLUSTER,
  'nodes/status': SYSTEM,
  persistentvolumes: CLUSTER,
  'persistentvolumes/status': SYSTEM,
  'namespaces/finalize': SYSTEM,
  'pods/binding': 'only the scheduler places pods',
  'admissionregistration.k8s.io:mutatingwebhookconfigurations': CLUSTER,
  'admissionregistration.k8s.io:validatingadmissionpolicies': CLUSTER,
  'admissionregistration.k8s.io:validatingadmissionpolicies/status': SYSTEM,
  'admissionregistration.k8s.io:validatingadmissionpolicybindings': CLUSTER,
  'admissionregistration.k8s.io:validatingwebhookconfigurations': CLUSTER,
  'apiextensions.k8s.io:customresourcedefinitions': CLUSTER,
  'apiextensions.k8s.io:customresourcedefinitions/status': SYSTEM,
  'apiregistration.k8s.io:apiservices': CLUSTER,
  'apiregistration.k8s.io:apiservices/status': SYSTEM,
  'rbac.authorization.k8s.io:clusterrolebindings': CLUSTER,
  'rbac.authorization.k8s.io:clusterroles': CLUSTER,
  'scheduling.k8s.io:priorityclasses': CLUSTER,
  'storage.k8s.io:storageclasses': CLUSTER,
  'authentication.k8s.io:selfsubjectreviews': 'is for all users: system:basic-user',
  'authentication.k8s.io:tokenreviews': 'reveals tokens of other users: system:auth-delegator',
  'authorization.k8s.io:selfsubjectaccessreviews': 'is for all users: system:basic-user',
  'authorization.k8s.io:selfsubjectrulesreviews': 'is for all users: system:basic-user',
  'authorization.k8s.io:subjectaccessreviews': 'reveals permissions of other users: system:auth-delegator',
};

function targetsOf({ group, plural, status, scale, extraSubresources = [] }: Resource): string[] {
  const subresources = [
    ...(status ? ['status'] : []),
    ...(scale ? ['scale'] : []),
    ...extraSubresources.map(({ name }) => name),
  ];
  const base = group === '' ? plural : `${group}:${plural}`;
  return [base, ...subresources.map((name) => `${base}/${name}`)];
}

const targets = served.flatMap(targetsOf);
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

test('every served resource is granted to namespace admins or excluded with a reason', () => {
  assert.ok(targets.length > 40, 'there must be kinds to check');
  // Without groups, so that the permissions of all users do not count.
  const adam: UserInfo = { name: 'adam', groups: [] };
  const forAdmins = (target: string) => VERBS.some((verb) => may(adam, `${verb} ${target} in a`));
  const forgotten = targets.filter((target) => !forAdmins(target) && !Object.hasOwn(LEFT_OUT, target));
  assert.deepEqual(forgotten, [], 'add the resource to auth/rbac/defaults/user-roles.ts or give the reason here');
  assert.deepEqual(
    targets.filter((target) => forAdmins(target) && Object.hasOwn(LEFT_OUT, target)),
    [],
    'must not be both excluded and granted',
  );
});

test('no default role names a kind that is not served', () => {
  const known = new Set(served.map(({ group, plural }) => `${group}:${plural}`));
  const unknown = [...clusterRoles, ...roles].flatMap(({ metadata, rules }) =>
    (rules ?? []).flatMap(({ apiGroups = [], resources = [] }) =>
      apiGroups.flatMap((group) =>
        resources
          .map((resource) => `${group}:${resource.split('/')[0]}`)
          .filter((one) => !one.includes('*') && !known.has(one))
          .map((one) => `${metadata.name} ${one}`),
      ),
    ),
  );
  assert.deepEqual(unknown, []);
});

const all: readonly KubeObject[] = [...clusterRoles, ...clusterRoleBindings, ...roles, ...roleBindings];

test('every default object has its labels and a unique name', () => {
  for (const { kind, metadata } of all) {
    assert.equal(metadata.labels?.['kubernetes.io/bootstrapping'], 'rbac-defaults', `${kind} ${metadata.name}`);
    assert.equal(metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'], 'true');
  }
  const names = all.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
  assert.equal(new Set(names).size, names.length);
});

test('every default binding refers to a default role', () => {
  for (const { roleRef, metadata } of [...clusterRoleBindings, ...roleBindings]) {
    assert.ok(rbac.rulesOfRole(roleRef, metadata.namespace ?? ''), `${metadata.name} of ${roleRef.name}`);
  }
});

test('an aggregated role starts with the rules that it will collect', () => {
  const all = clusterRoles as readonly Stored<RbacClusterRole>[];
  assert.equal(all.filter(({ aggregationRule }) => aggregationRule !== undefined).length, 3);
  for (const role of all) assert.deepEqual(decideAggregation({ role, all }).changes, [], role.metadata.name);
});

const ANYBODY = person('anybody');
const NODE = person('system:node:n1', 'system:nodes');

const cases: Record<string, [user: UserInfo, what: string, allowed: boolean]> = {
  'an anonymous user can read health': [ANONYMOUS_USER, 'get /readyz', true],
  'an anonymous user can read the version': [ANONYMOUS_USER, 'get /version', true],
  'an anonymous user cannot read single health checks': [ANONYMOUS_USER, 'get /readyz/store', false],
  'an anonymous user cannot read discovery': [ANONYMOUS_USER, 'get /api', false],
  'an anonymous user cannot create a SelfSubjectReview': [
    ANONYMOUS_USER,
    'create authentication.k8s.io:selfsubjectreviews',
    false,
  ],
  'an authenticated user can read discovery': [ANYBODY, 'get /apis/apps/v1', true],
  'an authenticated user can read OpenAPI': [ANYBODY, 'get /openapi/v3', true],
  'an authenticated user can create a SelfSubjectReview': [
    ANYBODY,
    'create authentication.k8s.io:selfsubjectreviews',
    true,
  ],
  'an authenticated user can list their own permissions': [
    ANYBODY,
    'create authorization.k8s.io:selfsubjectrulesreviews',
    true,
  ],
  'an authenticated user cannot review the access of others': [
    ANYBODY,
    'create authorization.k8s.io:subjectaccessreviews',
    false,
  ],
  'an authenticated user cannot read metrics': [ANYBODY, 'get /metrics', false],
  'an authenticated user cannot read objects': [ANYBODY, 'get pods in a', false],
  'a monitoring user can read metrics': [person('m', 'system:monitoring'), 'get /metrics', true],
  'a monitoring user can read single health checks': [person('m', 'system:monitoring'), 'get /livez/ping', true],
  'a service account can read the token keys': [controller('x'), 'get /openid/v1/jwks', true],
  'an authenticated user cannot read the token keys': [ANYBODY, 'get /openid/v1/jwks', false],
  'cluster-admin can do everything': [person('root'), 'juggle x:y/z in b', true],
  'cluster-admin can use any path': [person('root'), 'delete /x', true],

  'a viewer can list pods': [person('vera'), 'list pods in a', true],
  'a viewer can read logs': [person('vera'), 'get pods/log in a named p', true],
  'a viewer can read the namespace itself': [person('vera'), 'get namespaces in a named a', true],
  'a viewer cannot read another namespace': [person('vera'), 'get namespaces in b named b', false],
  'a viewer cannot read secrets': [person('vera'), 'get secrets in a named s', false],
  'a viewer cannot list roles': [person('vera'), 'list rbac.authorization.k8s.io:roles in a', false],
  'a viewer cannot write': [person('vera'), 'create configmaps in a', false],
  'an editor can read like a viewer': [person('edda'), 'watch batch:jobs in a', true],
  'an editor can create pods': [person('edda'), 'create pods in a', true],
  'an editor can evict pods': [person('edda'), 'create pods/eviction in a named p', true],
  'an editor can read secrets': [person('edda'), 'get secrets in a named s', true],
  'an editor can create tokens': [person('edda'), 'create serviceaccounts/token in a named default', true],
  'an editor cannot write the status of pods': [person('edda'), 'update pods/status in a named p', false],
  'an editor cannot create quotas': [person('edda'), 'create resourcequotas in a', false],
  'an editor cannot create role bindings': [
    person('edda'),
    'create rbac.authorization.k8s.io:rolebindings in a',
    false,
  ],
  'an editor cannot write in another namespace': [person('edda'), 'create pods in b', false],
  'an admin can write like an editor': [person('adam'), 'delete services in a named s', true],
  'an admin can create role bindings': [person('adam'), 'create rbac.authorization.k8s.io:rolebindings in a', true],
  'an admin cannot create cluster role bindings': [
    person('adam'),
    'create rbac.authorization.k8s.io:clusterrolebindings',
    false,
  ],
  'an admin cannot escalate': [person('adam'), 'escalate rbac.authorization.k8s.io:roles in a', false],
  'an admin cannot bind arbitrary cluster roles': [
    person('adam'),
    'bind rbac.authorization.k8s.io:clusterroles in a',
    false,
  ],
  'an admin cannot update quotas': [person('adam'), 'update resourcequotas in a named q', false],
  'an admin cannot delete the namespace': [person('adam'), 'delete namespaces in a named a', false],

  'the scheduler can bind pods': [person('system:kube-scheduler'), 'create pods/binding in a named p', true],
  'the scheduler can record events': [person('system:kube-scheduler'), 'patch events in a named e', true],
  'the scheduler cannot read secrets': [person('system:kube-scheduler'), 'get secrets in a named s', false],
  'the informers can watch everything': [person('system:kube-controller-manager'), 'watch x.example.com:widgets', true],
  'the informers cannot create pods': [person('system:kube-controller-manager'), 'create pods in a', false],
  'the informers cannot update roles': [
    person('system:kube-controller-manager'),
    'update rbac.authorization.k8s.io:clusterroles named x',
    false,
  ],
  'a node can update its lease': [NODE, 'update coordination.k8s.io:leases in kube-node-lease named n1', true],
  'a node cannot update other leases': [NODE, 'update coordination.k8s.io:leases in kube-system named leader', false],
  'a node can patch the status of pods': [NODE, 'patch pods/status in a named p', true],
  'a node cannot update pods': [NODE, 'update pods in a named p', false],
  'a node cannot create roles': [NODE, 'create rbac.authorization.k8s.io:clusterroles', false],

  'the job controller can create pods': [controller('job-controller'), 'create pods in a', true],
  'the job controller can record events': [controller('job-controller'), 'create events in a', true],
  'the job controller cannot read secrets': [controller('job-controller'), 'get secrets in a named s', false],
  'the namespace controller can delete everything': [
    controller('namespace-controller'),
    'delete x.example.com:w in a named x',
    true,
  ],
  'the namespace controller cannot create pods': [controller('namespace-controller'), 'create pods in a', false],
  'the namespace controller can finalize a namespace': [
    controller('namespace-controller'),
    'patch namespaces/finalize in a named a',
    true,
  ],
  'the garbage collector can patch everything': [
    controller('generic-garbage-collector'),
    'patch x.example.com:w in a named x',
    true,
  ],
  'the garbage collector cannot create pods': [controller('generic-garbage-collector'), 'create pods in a', false],
  'an account of that name in another namespace has no permissions': [
    serviceAccountUser('a', { name: 'job-controller', uid: '' }),
    'create pods in a',
    false,
  ],
};

for (const [name, [user, what, allowed]] of Object.entries(cases)) {
  test(`defaults: ${name}`, () => assert.equal(may(user, what), allowed));
}

test('only the aggregation controller can escalate, and no controller can impersonate or bind', () => {
  const roleKinds = ['roles', 'clusterroles'].map((plural) => `rbac.authorization.k8s.io:${plural}`);
  const strong = CONTROLLER_ACCOUNTS.filter((name) =>
    ['escalate', 'bind', 'impersonate', 'create'].some((verb) =>
      [...roleKinds, 'users', 'groups'].some((target) => may(controller(name), `${verb} ${target}`)),
    ),
  );
  assert.deepEqual(strong, ['clusterrole-aggregation-controller']);
});

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ANONYMOUS_USER } from '#engine/auth/groups.ts';
import { CONTROLLER_ACCOUNTS } from '#engine/auth/rbac/defaults/controller-roles.ts';
import { DEFAULT_POLICY } from '#engine/auth/rbac/defaults/default-policy.ts';
import type { ClusterRole } from '#engine/auth/rbac/policy.ts';
import { rbacAuthorizer, type RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { aBinding, asked, storeOf } from '#engine/auth/rbac/testing/policy-store.ts';
import { serviceAccountUser } from '#engine/auth/service-accounts/user.ts';
import { decideAggregation } from '#engine/controllers/cluster-role-aggregation.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { reviewResources } from '#engine/registry/kinds/reviews.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { UserInfo } from '#engine/request.ts';
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

const may = (user: UserInfo, what: string) => rbac.authorize(user, asked(what)).allowed;
const person = (name: string, ...groups: string[]): UserInfo => ({ name, groups: ['system:authenticated', ...groups] });
const controller = (name: string) => serviceAccountUser('kube-system', { name, uid: '' });

// Everything that is served is for admin, edit or view, or it is left out on purpose.

const served: readonly Resource[] = [...builtInResources, ...reviewResources, customResourceDefinitions];

const CLUSTER = 'belongs to the cluster: a matter of cluster-admin';
const SYSTEM = 'is written by the system, and its state is read with its resource';

const LEFT_OUT: Readonly<Record<string, string>> = {
  nodes: CLUSTER,
  'nodes/status': SYSTEM,
  persistentvolumes: CLUSTER,
  'persistentvolumes/status': SYSTEM,
  'namespaces/finalize': SYSTEM,
  'pods/binding': 'placing pods is the scheduler’s',
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
  'authentication.k8s.io:selfsubjectreviews': 'is for everybody: system:basic-user',
  'authentication.k8s.io:tokenreviews': 'tells of the tokens of others: system:auth-delegator',
  'authorization.k8s.io:selfsubjectaccessreviews': 'is for everybody: system:basic-user',
  'authorization.k8s.io:selfsubjectrulesreviews': 'is for everybody: system:basic-user',
  'authorization.k8s.io:subjectaccessreviews': 'tells of the rights of others: system:auth-delegator',
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

test('everything that is served is for namespace admins, or left out for a reason', () => {
  assert.ok(targets.length > 40, 'there are kinds to look at');
  // Nothing but an admin: what everybody may do is not meant.
  const adam: UserInfo = { name: 'adam', groups: [] };
  const forAdmins = (target: string) => VERBS.some((verb) => may(adam, `${verb} ${target} in a`));
  const forgotten = targets.filter((target) => !forAdmins(target) && !Object.hasOwn(LEFT_OUT, target));
  assert.deepEqual(forgotten, [], 'add it to auth/rbac/defaults/user-roles.ts or name the reason here');
  assert.deepEqual(
    targets.filter((target) => forAdmins(target) && Object.hasOwn(LEFT_OUT, target)),
    [],
    'is left out and given all the same',
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

// The objects themselves.

const all: readonly KubeObject[] = [...clusterRoles, ...clusterRoleBindings, ...roles, ...roleBindings];

test('every default carries its marks and has its name for itself', () => {
  for (const { kind, metadata } of all) {
    assert.equal(metadata.labels?.['kubernetes.io/bootstrapping'], 'rbac-defaults', `${kind} ${metadata.name}`);
    assert.equal(metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'], 'true');
  }
  const names = all.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
  assert.equal(new Set(names).size, names.length);
});

test('every default binding is of a default role', () => {
  for (const { roleRef, metadata } of [...clusterRoleBindings, ...roleBindings]) {
    assert.ok(rbac.rulesOfRole(roleRef, metadata.namespace ?? ''), `${metadata.name} of ${roleRef.name}`);
  }
});

test('what gathers has what it will gather', () => {
  const all = clusterRoles as readonly Stored<ClusterRole>[];
  assert.equal(all.filter(({ aggregationRule }) => aggregationRule !== undefined).length, 3);
  for (const role of all) assert.deepEqual(decideAggregation({ role, all }).changes, [], role.metadata.name);
});

// What they mean.

const ANYBODY = person('anybody');
const NODE = person('system:node:n1', 'system:nodes');

const cases: Record<string, [user: UserInfo, what: string, allowed: boolean]> = {
  'anybody without a proof sees health': [ANONYMOUS_USER, 'get /readyz', true],
  'and the version': [ANONYMOUS_USER, 'get /version', true],
  'but not single checks': [ANONYMOUS_USER, 'get /readyz/store', false],
  'nor discovery': [ANONYMOUS_USER, 'get /api', false],
  'nor themselves': [ANONYMOUS_USER, 'create authentication.k8s.io:selfsubjectreviews', false],
  'anybody else sees discovery': [ANYBODY, 'get /apis/apps/v1', true],
  'and OpenAPI': [ANYBODY, 'get /openapi/v3', true],
  'and asks who they are': [ANYBODY, 'create authentication.k8s.io:selfsubjectreviews', true],
  'and what they may': [ANYBODY, 'create authorization.k8s.io:selfsubjectrulesreviews', true],
  'but not what others may': [ANYBODY, 'create authorization.k8s.io:subjectaccessreviews', false],
  'nor metrics': [ANYBODY, 'get /metrics', false],
  'nor any object': [ANYBODY, 'get pods in a', false],
  'monitors see metrics': [person('m', 'system:monitoring'), 'get /metrics', true],
  'and single checks': [person('m', 'system:monitoring'), 'get /livez/ping', true],
  'accounts find out how to check tokens': [controller('x'), 'get /openid/v1/jwks', true],
  'anybody else does not': [ANYBODY, 'get /openid/v1/jwks', false],
  'cluster-admin may do everything': [person('root'), 'juggle x:y/z in b', true],
  'and take any path': [person('root'), 'delete /x', true],

  'a viewer reads pods': [person('vera'), 'list pods in a', true],
  'and logs': [person('vera'), 'get pods/log in a named p', true],
  'and the namespace itself': [person('vera'), 'get namespaces in a named a', true],
  'but not another': [person('vera'), 'get namespaces in b named b', false],
  'nor secrets': [person('vera'), 'get secrets in a named s', false],
  'nor roles': [person('vera'), 'list rbac.authorization.k8s.io:roles in a', false],
  'and changes nothing': [person('vera'), 'create configmaps in a', false],
  'an editor sees what viewers see': [person('edda'), 'watch batch:jobs in a', true],
  'and writes pods': [person('edda'), 'create pods in a', true],
  'and evicts them': [person('edda'), 'create pods/eviction in a named p', true],
  'and reads secrets': [person('edda'), 'get secrets in a named s', true],
  'and makes tokens': [person('edda'), 'create serviceaccounts/token in a named default', true],
  'but does not write their status': [person('edda'), 'update pods/status in a named p', false],
  'nor quotas': [person('edda'), 'create resourcequotas in a', false],
  'nor roles, as an editor': [person('edda'), 'create rbac.authorization.k8s.io:rolebindings in a', false],
  'nor another namespace': [person('edda'), 'create pods in b', false],
  'an admin does what editors do': [person('adam'), 'delete services in a named s', true],
  'and gives roles': [person('adam'), 'create rbac.authorization.k8s.io:rolebindings in a', true],
  'but not beyond': [person('adam'), 'create rbac.authorization.k8s.io:clusterrolebindings', false],
  'nor escalates': [person('adam'), 'escalate rbac.authorization.k8s.io:roles in a', false],
  'nor binds what they do not hold': [person('adam'), 'bind rbac.authorization.k8s.io:clusterroles in a', false],
  'nor changes quotas': [person('adam'), 'update resourcequotas in a named q', false],
  'nor removes the namespace': [person('adam'), 'delete namespaces in a named a', false],

  'the scheduler places pods': [person('system:kube-scheduler'), 'create pods/binding in a named p', true],
  'and tells why': [person('system:kube-scheduler'), 'patch events in a named e', true],
  'but reads no secrets': [person('system:kube-scheduler'), 'get secrets in a named s', false],
  'informers see everything': [person('system:kube-controller-manager'), 'watch x.example.com:widgets', true],
  'and write no pods': [person('system:kube-controller-manager'), 'create pods in a', false],
  'nor roles, as informers': [
    person('system:kube-controller-manager'),
    'update rbac.authorization.k8s.io:clusterroles named x',
    false,
  ],
  'a node keeps its lease': [NODE, 'update coordination.k8s.io:leases in kube-node-lease named n1', true],
  'but no other': [NODE, 'update coordination.k8s.io:leases in kube-system named leader', false],
  'a node reports pods': [NODE, 'patch pods/status in a named p', true],
  'but does not change them': [NODE, 'update pods in a named p', false],
  'nor roles, as a node': [NODE, 'create rbac.authorization.k8s.io:clusterroles', false],

  'the job controller makes pods': [controller('job-controller'), 'create pods in a', true],
  'and tells of it': [controller('job-controller'), 'create events in a', true],
  'but reads no secrets, for jobs': [controller('job-controller'), 'get secrets in a named s', false],
  'the namespace controller removes anything': [
    controller('namespace-controller'),
    'delete x.example.com:w in a named x',
    true,
  ],
  'but makes nothing': [controller('namespace-controller'), 'create pods in a', false],
  'it lets a namespace go': [controller('namespace-controller'), 'patch namespaces/finalize in a named a', true],
  'the collector changes anything': [
    controller('generic-garbage-collector'),
    'patch x.example.com:w in a named x',
    true,
  ],
  'but makes nothing, either': [controller('generic-garbage-collector'), 'create pods in a', false],
  'an account of that name elsewhere is nobody': [
    serviceAccountUser('a', { name: 'job-controller', uid: '' }),
    'create pods in a',
    false,
  ],
};

for (const [name, [user, what, allowed]] of Object.entries(cases)) {
  test(`defaults: ${name}`, () => assert.equal(may(user, what), allowed));
}

test('nobody but the aggregation controller escalates, and no controller impersonates or binds', () => {
  const roleKinds = ['roles', 'clusterroles'].map((plural) => `rbac.authorization.k8s.io:${plural}`);
  const strong = CONTROLLER_ACCOUNTS.filter((name) =>
    ['escalate', 'bind', 'impersonate', 'create'].some((verb) =>
      [...roleKinds, 'users', 'groups'].some((target) => may(controller(name), `${verb} ${target}`)),
    ),
  );
  assert.deepEqual(strong, ['clusterrole-aggregation-controller']);
});

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { rbacEscalation } from '#engine/admission/rbac-escalation.ts';
import { rbacAuthorizer, type RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { RBAC_GROUP } from '#engine/auth/rbac/policy.ts';
import { aBinding, aRole, storeOf } from '#engine/auth/rbac/testing/policy-store.ts';
import type { UserInfo } from '#engine/request/request.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '#engine/registry/kinds/access/rbac.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

const allow = (verbs: string, group: string, resources: string, names?: string[]) => ({
  apiGroups: [group],
  resources: resources.split(','),
  verbs: verbs.split(','),
  ...(names && { resourceNames: names }),
});
const EVERYTHING = [allow('*', '*', '*'), { nonResourceURLs: ['*'], verbs: ['*'] }];
const ROLE_RIGHTS = allow('create,update,patch,get', RBAC_GROUP, 'roles,rolebindings,clusterroles,clusterrolebindings');

const POLICY = [
  aRole('cluster-admin', ...EVERYTHING),
  aRole('core-owner', allow('*', '', '*'), ROLE_RIGHTS),
  aRole('admin', allow('get,create,delete', '', 'pods,secrets'), ROLE_RIGHTS),
  aRole('secret-reader', allow('get,list', '', 'secrets')),
  aRole('pod-reader', allow('get', '', 'pods')),
  aRole('binder', allow('bind', RBAC_GROUP, 'clusterroles', ['secret-reader']), ROLE_RIGHTS),
  aRole('escalator', allow('escalate', RBAC_GROUP, 'roles'), ROLE_RIGHTS),
  aRole('named-escalator', allow('escalate', RBAC_GROUP, 'clusterroles', ['mine']), ROLE_RIGHTS),
  aRole('a/local', allow('get', '', 'pods')),
  aRole('a/strong', allow('*', '*', '*')),

  aBinding('root', 'ClusterRole/cluster-admin', 'User root'),
  aBinding('half', 'ClusterRole/core-owner', 'User half'),
  aBinding('a/admin', 'ClusterRole/admin', 'User anna'),
  aBinding('a/binder', 'ClusterRole/binder', 'User bina'),
  aBinding('a/escalator', 'ClusterRole/escalator', 'User esko'),
  aBinding('named', 'ClusterRole/named-escalator', 'User nils'),
  aBinding('broken', 'ClusterRole/no-such', 'User bob'),
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

const RESOURCES = new Map(
  [roles, clusterRoles, roleBindings, clusterRoleBindings, configMaps].map((resource) => [resource.kind, resource]),
);

function attempt(who: string, object: KubeObject, oldObject: KubeObject | undefined): string {
  const [userName = '', ...groups] = who.split(' ');
  const user: UserInfo = { name: userName, groups };
  const resource = RESOURCES.get(object.kind)!;
  const { name = '', namespace = '' } = object.metadata;
  const attributes: AdmissionAttributes = {
    operation: oldObject === undefined ? 'CREATE' : 'UPDATE',
    resource,
    kind: resource,
    subresource: '',
    namespace,
    name,
    object,
    oldObject,
    user,
    dryRun: false,
    options: {},
    notes: { warn: () => {}, annotate: () => {} },
    signal: AbortSignal.timeout(1_000_000),
    reshape: () => {},
  };
  try {
    void rbacEscalation(rbac)(attributes);
    return 'allowed';
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

function changed<T extends KubeObject>(object: T, change: (copy: T) => void): T {
  const copy = deepClone(object);
  change(copy);
  return copy;
}

const refusedGrant = (what: string, who: string, ...missing: string[]) =>
  `403 ${what} is forbidden: user ${who} is attempting to grant RBAC permissions not currently held:\n${missing.join('\n')}`;
const NO_AGGREGATION = (name: string) =>
  `403 clusterroles.${RBAC_GROUP} "${name}" is forbidden: must have cluster-admin privileges to use the aggregationRule`;

const aggregated = (...rules: Parameters<typeof aRole>[1][]) => ({
  ...aRole('sum', ...rules),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
});
const readSecrets = (place: string) => aRole(place, allow('get', '', 'secrets'));

const cases: Record<string, { who: string; object: KubeObject; old?: KubeObject; want: string }> = {
  'a role with permissions that the user holds there': { who: 'anna', object: readSecrets('a/r'), want: 'allowed' },
  'a role with more permissions than the user holds': {
    who: 'anna team',
    object: aRole('a/r', allow('get,list', '', 'secrets,nodes')),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "r"`,
      '"anna" (groups=["team"])',
      '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}',
    ),
  },
  'the same role in another namespace': {
    who: 'anna a b',
    object: readSecrets('b/r'),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "r"`,
      '"anna" (groups=["a" "b"])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
  },
  'the same as a cluster role': {
    who: 'anna',
    object: readSecrets('r'),
    want: refusedGrant(
      `clusterroles.${RBAC_GROUP} "r"`,
      '"anna" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
  },
  'all verbs if the user holds some': {
    who: 'anna',
    object: aRole('a/r', allow('*', '', 'secrets')),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "r"`,
      '"anna" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}',
    ),
  },
  'the permission to escalate': {
    who: 'anna',
    object: aRole('a/r', allow('escalate', RBAC_GROUP, 'roles')),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "r"`,
      '"anna" (groups=[])',
      `{APIGroups:["${RBAC_GROUP}"], Resources:["roles"], Verbs:["escalate"]}`,
    ),
  },
  'a role without rules': { who: 'nobody', object: aRole('a/r'), want: 'allowed' },
  'everything, as cluster-admin': { who: 'root', object: aRole('r', ...EVERYTHING), want: 'allowed' },
  'everything, as a member of system:masters': {
    who: 'x system:masters',
    object: aRole('r', ...EVERYTHING),
    want: 'allowed',
  },
  'non-resource URLs, as owner of the core group': {
    who: 'half',
    object: aRole('r', allow('*', '', 'pods'), { nonResourceURLs: ['*'], verbs: ['*'] }),
    want: refusedGrant(`clusterroles.${RBAC_GROUP} "r"`, '"half" (groups=[])', '{NonResourceURLs:["*"], Verbs:["*"]}'),
  },
  'more permissions than the user holds, with the verb escalate': {
    who: 'esko',
    object: aRole('a/r', allow('*', '*', '*')),
    want: 'allowed',
  },
  'escalate in another namespace': {
    who: 'esko',
    object: readSecrets('b/r'),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "r"`,
      '"esko" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
  },
  'escalate by name on create': {
    who: 'nils',
    object: readSecrets('mine'),
    want: refusedGrant(
      `clusterroles.${RBAC_GROUP} "mine"`,
      '"nils" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
  },
  'escalate by name on update': { who: 'nils', object: readSecrets('mine'), old: aRole('mine'), want: 'allowed' },
  'escalate by another name': {
    who: 'nils',
    object: readSecrets('yours'),
    old: aRole('yours'),
    want: refusedGrant(
      `clusterroles.${RBAC_GROUP} "yours"`,
      '"nils" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ),
  },
  'a role with millions of permissions': {
    who: 'anna',
    object: aRole('a/r', {
      apiGroups: Array.from({ length: 300 }, (_, i) => `g${i}`),
      resources: Array.from({ length: 300 }, (_, i) => `r${i}`),
      verbs: ['get'],
    }),
    want: `403 roles.${RBAC_GROUP} "r" is forbidden: user "anna" (groups=[]) is attempting to grant more RBAC permissions than can be compared with those currently held`,
  },
  'a role by a user whose own role is missing': {
    who: 'bob',
    object: readSecrets('r'),
    want: `${refusedGrant(
      `clusterroles.${RBAC_GROUP} "r"`,
      '"bob" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    )}; resolution errors: [clusterroles.${RBAC_GROUP} "no-such" not found]`,
  },

  'an update that adds permissions that the user holds': {
    who: 'anna',
    object: readSecrets('a/r'),
    old: aRole('a/r'),
    want: 'allowed',
  },
  'an update that keeps permissions that the user does not hold': {
    who: 'anna',
    object: changed(aRole('a/strong', allow('*', '*', '*')), ({ metadata }) => (metadata.labels = { a: 'b' })),
    old: aRole('a/strong', allow('*', '*', '*')),
    want: refusedGrant(
      `roles.${RBAC_GROUP} "strong"`,
      '"anna" (groups=[])',
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
    ),
  },
  'an update that changes nothing': {
    who: 'anna',
    object: aRole('a/strong', allow('*', '*', '*')),
    old: aRole('a/strong', allow('*', '*', '*')),
    want: 'allowed',
  },
  "the garbage collector's update": {
    who: 'collector',
    object: changed(aRole('a/strong', allow('*', '*', '*')), ({ metadata }) => {
      metadata.finalizers = [];
      metadata.ownerReferences = [];
    }),
    old: changed(aRole('a/strong', allow('*', '*', '*')), ({ metadata }) => {
      metadata.finalizers = ['foregroundDeletion'];
    }),
    want: 'allowed',
  },

  'an aggregation rule, as an ordinary user': { who: 'anna', object: aggregated(), want: NO_AGGREGATION('sum') },
  'an aggregation rule, as owner of the core group': { who: 'half', object: aggregated(), want: NO_AGGREGATION('sum') },
  'an aggregation rule, as cluster-admin': { who: 'root', object: aggregated(), want: 'allowed' },
  'a removed aggregation rule': {
    who: 'half',
    object: aRole('sum'),
    old: aggregated(),
    want: NO_AGGREGATION('sum'),
  },
  'an aggregation rule without selectors': {
    who: 'half',
    object: { ...aRole('sum'), aggregationRule: { clusterRoleSelectors: [] } },
    want: 'allowed',
  },

  'a binding of permissions that the user holds': {
    who: 'anna',
    object: aBinding('a/b', 'ClusterRole/pod-reader', 'User x'),
    want: 'allowed',
  },
  "a binding of the namespace's role": {
    who: 'anna',
    object: aBinding('a/b', 'Role/local', 'User x'),
    want: 'allowed',
  },
  'a binding of a role with more permissions': {
    who: 'anna',
    object: aBinding('a/b', 'ClusterRole/secret-reader', 'User anna'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"anna" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}',
    ),
  },
  "a binding of the namespace's strong role": {
    who: 'anna',
    object: aBinding('a/b', 'Role/strong', 'User anna'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"anna" (groups=[])',
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
    ),
  },
  'cluster-admin for the user in their own namespace': {
    who: 'anna',
    object: aBinding('a/b', 'ClusterRole/cluster-admin', 'User anna'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"anna" (groups=[])',
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
      '{NonResourceURLs:["*"], Verbs:["*"]}',
    ),
  },
  'permissions of one namespace for the whole cluster': {
    who: 'anna',
    object: aBinding('b', 'ClusterRole/pod-reader', 'User anna'),
    want: refusedGrant(
      `clusterrolebindings.${RBAC_GROUP} "b"`,
      '"anna" (groups=[])',
      '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ),
  },
  'a binding with the verb bind on that role': {
    who: 'bina',
    object: aBinding('a/b', 'ClusterRole/secret-reader', 'User x'),
    want: 'allowed',
  },
  'a binding with the verb bind on another role': {
    who: 'bina',
    object: aBinding('a/b', 'ClusterRole/pod-reader', 'User x'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"bina" (groups=[])',
      '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ),
  },
  'the verb bind in a namespace does not apply to the cluster': {
    who: 'bina',
    object: aBinding('b', 'ClusterRole/secret-reader', 'User x'),
    want: refusedGrant(
      `clusterrolebindings.${RBAC_GROUP} "b"`,
      '"bina" (groups=[])',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
    ),
  },
  'escalate does not allow bind': {
    who: 'esko',
    object: aBinding('a/b', 'ClusterRole/pod-reader', 'User esko'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"esko" (groups=[])',
      '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ),
  },
  'a binding of a missing cluster role': {
    who: 'anna',
    object: aBinding('a/b', 'ClusterRole/no-such', 'User x'),
    want: `404 clusterroles.${RBAC_GROUP} "no-such" not found`,
  },
  'a binding of a role in another namespace': {
    who: 'anna',
    object: aBinding('b/b', 'Role/local', 'User x'),
    want: `404 roles.${RBAC_GROUP} "local" not found`,
  },
  'a binding of a missing role, as a member of system:masters': {
    who: 'x system:masters',
    object: aBinding('a/b', 'ClusterRole/no-such', 'User x'),
    want: 'allowed',
  },
  'another subject for a binding with more permissions': {
    who: 'anna',
    object: aBinding('a/b', 'Role/strong', 'User root', 'User anna'),
    old: aBinding('a/b', 'Role/strong', 'User root'),
    want: refusedGrant(
      `rolebindings.${RBAC_GROUP} "b"`,
      '"anna" (groups=[])',
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
    ),
  },

  'other kinds': {
    who: 'nobody',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'a' } },
    want: 'allowed',
  },
};

for (const [name, { who, object, old, want }] of Object.entries(cases)) {
  test(`escalation: ${name}`, () => assert.equal(attempt(who, object, old), want));
}

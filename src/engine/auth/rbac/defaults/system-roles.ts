/** The permissions of all users, and the roles of cluster components other than controllers. */
import { KUBELET_CLIENT } from '#engine/auth/front-proxy.ts';
import { AUTHENTICATED, CONTROLLER_MANAGER, MASTERS, NODES, SCHEDULER, UNAUTHENTICATED } from '#engine/auth/groups.ts';
import type { RbacBinding, RbacClusterRole } from '#engine/auth/rbac/policy.ts';
import { JWKS_PATH, OPENID_CONFIGURATION_PATH } from '#engine/auth/service-accounts/openid.ts';
import { SERVICE_ACCOUNTS_GROUP } from '#engine/auth/service-accounts/user.ts';
import {
  COORDINATION,
  CORE_GROUP,
  POLICY,
  DEFAULT_READ_VERBS,
  DEFAULT_RECORD_EVENTS_RULE,
  defaultClusterRole,
  defaultClusterRoleBinding,
  rbacGroupSubject,
  pathRule,
  resourceRule,
  rbacUserSubject,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const HEALTH = ['/healthz', '/livez', '/readyz'] as const;
const VERSION = ['/version', '/version/'] as const;
const DISCOVERY = ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'] as const;

const reviewOthers = [
  resourceRule(['create'], AUTHENTICATION, 'tokenreviews'),
  resourceRule(['create'], AUTHORIZATION, 'subjectaccessreviews'),
];

export const SYSTEM_ROLES: readonly RbacClusterRole[] = [
  defaultClusterRole('system:discovery', [pathRule(['get'], ...HEALTH, ...VERSION, ...DISCOVERY)]),
  defaultClusterRole('system:public-info-viewer', [pathRule(['get'], ...HEALTH, ...VERSION)]),
  defaultClusterRole('system:basic-user', [
    resourceRule(['create'], AUTHORIZATION, 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
    resourceRule(['create'], AUTHENTICATION, 'selfsubjectreviews'),
  ]),
  defaultClusterRole('system:monitoring', [
    pathRule(['get'], '/metrics', ...HEALTH, '/healthz/*', '/livez/*', '/readyz/*'),
  ]),
  defaultClusterRole('system:service-account-issuer-discovery', [
    pathRule(['get'], ...[OPENID_CONFIGURATION_PATH, JWKS_PATH].flatMap((path) => [path, `${path}/`])),
  ]),
  // For aggregated API servers that authenticate and authorize their users through us.
  defaultClusterRole('system:auth-delegator', reviewOthers),

  defaultClusterRole(SCHEDULER, [
    DEFAULT_RECORD_EVENTS_RULE,
    resourceRule(['create'], COORDINATION, 'leases'),
    { ...resourceRule([...DEFAULT_READ_VERBS, 'update'], COORDINATION, 'leases'), resourceNames: ['kube-scheduler'] },
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'nodes', 'namespaces', 'services', 'persistentvolumes'),
    // An annotation of a claim names the node that it waits for.
    resourceRule([...DEFAULT_READ_VERBS, 'patch'], CORE_GROUP, 'persistentvolumeclaims'),
    resourceRule([...DEFAULT_READ_VERBS, 'delete'], CORE_GROUP, 'pods'),
    resourceRule(['create'], CORE_GROUP, 'pods/binding'),
    resourceRule(['patch', 'update'], CORE_GROUP, 'pods/status'),
    resourceRule(DEFAULT_READ_VERBS, POLICY, 'poddisruptionbudgets'),
    resourceRule(DEFAULT_READ_VERBS, 'storage.k8s.io', 'storageclasses'),
    resourceRule(DEFAULT_READ_VERBS, 'scheduling.k8s.io', 'priorityclasses'),
  ]),

  // One informer for each kind serves all controllers; each controller writes under its own account.
  defaultClusterRole(CONTROLLER_MANAGER, [
    DEFAULT_RECORD_EVENTS_RULE,
    resourceRule(['create'], COORDINATION, 'leases'),
    { ...resourceRule(['get', 'update'], COORDINATION, 'leases'), resourceNames: ['kube-controller-manager'] },
    resourceRule(['list', 'watch'], '*', '*'),
    resourceRule(['get'], CORE_GROUP, 'configmaps', 'namespaces', 'secrets', 'serviceaccounts'),
    ...reviewOthers,
  ]),

  // The engine's permissions at node agents that authorize it by our roles.
  defaultClusterRole('system:kubelet-api-admin', [
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'nodes'),
    resourceRule(['proxy'], CORE_GROUP, 'nodes'),
    resourceRule(['*'], CORE_GROUP, 'nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/stats'),
  ]),
  // Shared by all nodes. auth/node-reads.ts limits a node to the pods, Secrets, ConfigMaps and instances that are bound to
  // it, admission/node-restriction.ts what it writes. Its lease is in namespaced-roles.ts.
  defaultClusterRole('system:node', [
    DEFAULT_RECORD_EVENTS_RULE,
    resourceRule(
      DEFAULT_READ_VERBS,
      CORE_GROUP,
      'configmaps',
      'nodes',
      'persistentvolumeclaims',
      'pods',
      'secrets',
      'services',
    ),
    resourceRule(['get'], CORE_GROUP, 'persistentvolumes'),
    // A node agent routes Services, as kube-proxy does elsewhere.
    resourceRule(DEFAULT_READ_VERBS, 'discovery.k8s.io', 'endpointslices'),
    resourceRule(['create', 'patch', 'update'], CORE_GROUP, 'nodes'),
    resourceRule(['patch', 'update'], CORE_GROUP, 'nodes/status', 'pods/status'),
    resourceRule(['create', 'delete'], CORE_GROUP, 'pods'),
    resourceRule(['create'], CORE_GROUP, 'serviceaccounts/token'),
    resourceRule(['create'], AUTHORIZATION, 'localsubjectaccessreviews'),
    ...reviewOthers,
  ]),
];

export const SYSTEM_BINDINGS: readonly RbacBinding[] = [
  defaultClusterRoleBinding('cluster-admin', rbacGroupSubject(MASTERS)),
  defaultClusterRoleBinding('system:discovery', rbacGroupSubject(AUTHENTICATED)),
  defaultClusterRoleBinding('system:basic-user', rbacGroupSubject(AUTHENTICATED)),
  defaultClusterRoleBinding(
    'system:public-info-viewer',
    rbacGroupSubject(AUTHENTICATED),
    rbacGroupSubject(UNAUTHENTICATED),
  ),
  defaultClusterRoleBinding('system:monitoring', rbacGroupSubject('system:monitoring')),
  defaultClusterRoleBinding('system:service-account-issuer-discovery', rbacGroupSubject(SERVICE_ACCOUNTS_GROUP)),
  defaultClusterRoleBinding(SCHEDULER, rbacUserSubject(SCHEDULER)),
  defaultClusterRoleBinding(CONTROLLER_MANAGER, rbacUserSubject(CONTROLLER_MANAGER)),
  defaultClusterRoleBinding('system:node', rbacGroupSubject(NODES)),
  defaultClusterRoleBinding('system:kubelet-api-admin', rbacUserSubject(KUBELET_CLIENT)),
];

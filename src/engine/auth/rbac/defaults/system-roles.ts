/** The permissions of all users, and the roles of cluster components other than controllers. */
import { KUBELET_CLIENT } from '#engine/auth/front-proxy.ts';
import { AUTHENTICATED, CONTROLLER_MANAGER, MASTERS, NODES, SCHEDULER, UNAUTHENTICATED } from '#engine/auth/groups.ts';
import type { Binding, ClusterRole } from '#engine/auth/rbac/policy.ts';
import { JWKS_PATH, OPENID_CONFIGURATION_PATH } from '#engine/auth/service-accounts/openid.ts';
import { SERVICE_ACCOUNTS_GROUP } from '#engine/auth/service-accounts/user.ts';
import {
  COORDINATION,
  CORE_GROUP,
  POLICY,
  READ,
  RECORD_EVENTS,
  clusterRole,
  clusterRoleBinding,
  group,
  pathRule,
  rule,
  user,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const HEALTH = ['/healthz', '/livez', '/readyz'] as const;
const VERSION = ['/version', '/version/'] as const;
const DISCOVERY = ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'] as const;

const reviewOthers = [
  rule(['create'], AUTHENTICATION, 'tokenreviews'),
  rule(['create'], AUTHORIZATION, 'subjectaccessreviews'),
];

export const SYSTEM_ROLES: readonly ClusterRole[] = [
  clusterRole('system:discovery', [pathRule(['get'], ...HEALTH, ...VERSION, ...DISCOVERY)]),
  clusterRole('system:public-info-viewer', [pathRule(['get'], ...HEALTH, ...VERSION)]),
  clusterRole('system:basic-user', [
    rule(['create'], AUTHORIZATION, 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
    rule(['create'], AUTHENTICATION, 'selfsubjectreviews'),
  ]),
  clusterRole('system:monitoring', [pathRule(['get'], '/metrics', ...HEALTH, '/healthz/*', '/livez/*', '/readyz/*')]),
  clusterRole('system:service-account-issuer-discovery', [
    pathRule(['get'], ...[OPENID_CONFIGURATION_PATH, JWKS_PATH].flatMap((path) => [path, `${path}/`])),
  ]),
  // For aggregated API servers that authenticate and authorize their users through us.
  clusterRole('system:auth-delegator', reviewOthers),

  clusterRole(SCHEDULER, [
    RECORD_EVENTS,
    rule(['create'], COORDINATION, 'leases'),
    { ...rule([...READ, 'update'], COORDINATION, 'leases'), resourceNames: ['kube-scheduler'] },
    rule(READ, CORE_GROUP, 'nodes', 'namespaces', 'services', 'persistentvolumes'),
    // An annotation of a claim names the node that it waits for.
    rule([...READ, 'patch'], CORE_GROUP, 'persistentvolumeclaims'),
    rule([...READ, 'delete'], CORE_GROUP, 'pods'),
    rule(['create'], CORE_GROUP, 'pods/binding'),
    rule(['patch', 'update'], CORE_GROUP, 'pods/status'),
    rule(READ, POLICY, 'poddisruptionbudgets'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
    rule(READ, 'scheduling.k8s.io', 'priorityclasses'),
  ]),

  // One informer for each kind serves all controllers; each controller writes under its own account.
  clusterRole(CONTROLLER_MANAGER, [
    RECORD_EVENTS,
    rule(['create'], COORDINATION, 'leases'),
    { ...rule(['get', 'update'], COORDINATION, 'leases'), resourceNames: ['kube-controller-manager'] },
    rule(['list', 'watch'], '*', '*'),
    rule(['get'], CORE_GROUP, 'configmaps', 'namespaces', 'secrets', 'serviceaccounts'),
    ...reviewOthers,
  ]),

  // The engine's permissions at node agents that authorize it by our roles.
  clusterRole('system:kubelet-api-admin', [
    rule(READ, CORE_GROUP, 'nodes'),
    rule(['proxy'], CORE_GROUP, 'nodes'),
    rule(['*'], CORE_GROUP, 'nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/stats'),
  ]),
  // Shared by all nodes. auth/node-reads.ts limits the Secrets and ConfigMaps that a node reads,
  // admission/node-restriction.ts what it writes. Its lease is in namespaced-roles.ts.
  clusterRole('system:node', [
    RECORD_EVENTS,
    rule(READ, CORE_GROUP, 'configmaps', 'nodes', 'persistentvolumeclaims', 'pods', 'secrets', 'services'),
    rule(['get'], CORE_GROUP, 'persistentvolumes'),
    rule(['create', 'patch', 'update'], CORE_GROUP, 'nodes'),
    rule(['patch', 'update'], CORE_GROUP, 'nodes/status', 'pods/status'),
    rule(['create', 'delete'], CORE_GROUP, 'pods'),
    rule(['create'], CORE_GROUP, 'serviceaccounts/token'),
    rule(['create'], AUTHORIZATION, 'localsubjectaccessreviews'),
    ...reviewOthers,
  ]),
];

export const SYSTEM_BINDINGS: readonly Binding[] = [
  clusterRoleBinding('cluster-admin', group(MASTERS)),
  clusterRoleBinding('system:discovery', group(AUTHENTICATED)),
  clusterRoleBinding('system:basic-user', group(AUTHENTICATED)),
  clusterRoleBinding('system:public-info-viewer', group(AUTHENTICATED), group(UNAUTHENTICATED)),
  clusterRoleBinding('system:monitoring', group('system:monitoring')),
  clusterRoleBinding('system:service-account-issuer-discovery', group(SERVICE_ACCOUNTS_GROUP)),
  clusterRoleBinding(SCHEDULER, user(SCHEDULER)),
  clusterRoleBinding(CONTROLLER_MANAGER, user(CONTROLLER_MANAGER)),
  clusterRoleBinding('system:node', group(NODES)),
  clusterRoleBinding('system:kubelet-api-admin', user(KUBELET_CLIENT)),
];

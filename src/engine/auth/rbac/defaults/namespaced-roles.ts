/** Default roles for a single namespace. */
import type { RbacBinding, RbacRole } from '#engine/auth/rbac/policy.ts';
import {
  COORDINATION,
  CORE_GROUP,
  DEFAULT_READ_VERBS,
  rbacGroupSubject,
  defaultRole,
  defaultRoleBinding,
  resourceRule,
  rbacUserSubject,
} from '#engine/auth/rbac/defaults/build-policy.ts';
import { CONTROLLER_MANAGER, NODES, SCHEDULER } from '#engine/auth/groups.ts';

const AUTHENTICATION_READER = 'extension-apiserver-authentication-reader';

export const NAMESPACED_ROLES: readonly RbacRole[] = [
  // For aggregated API servers: how to trust the identity that we pass to them.
  defaultRole('kube-system', AUTHENTICATION_READER, [
    {
      ...resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'configmaps'),
      resourceNames: ['extension-apiserver-authentication'],
    },
  ]),
  defaultRole('kube-node-lease', 'system:node', [
    resourceRule([...DEFAULT_READ_VERBS, 'create', 'delete', 'patch', 'update'], COORDINATION, 'leases'),
  ]),
];

export const NAMESPACED_BINDINGS: readonly RbacBinding[] = [
  defaultRoleBinding(
    'kube-system',
    `system::${AUTHENTICATION_READER}`,
    AUTHENTICATION_READER,
    rbacUserSubject(CONTROLLER_MANAGER),
    rbacUserSubject(SCHEDULER),
  ),
  defaultRoleBinding('kube-node-lease', 'system:node', 'system:node', rbacGroupSubject(NODES)),
];

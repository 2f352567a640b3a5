/** Default roles for a single namespace. */
import type { Binding, Role } from '#engine/auth/rbac/policy.ts';
import {
  COORDINATION,
  CORE_GROUP,
  READ,
  group,
  role,
  roleBinding,
  rule,
  user,
} from '#engine/auth/rbac/defaults/build-policy.ts';
import { CONTROLLER_MANAGER, NODES, SCHEDULER } from '#engine/auth/groups.ts';

const AUTHENTICATION_READER = 'extension-apiserver-authentication-reader';

export const NAMESPACED_ROLES: readonly Role[] = [
  // For aggregated API servers: how to trust the identity that we pass to them.
  role('kube-system', AUTHENTICATION_READER, [
    { ...rule(READ, CORE_GROUP, 'configmaps'), resourceNames: ['extension-apiserver-authentication'] },
  ]),
  role('kube-node-lease', 'system:node', [
    rule([...READ, 'create', 'delete', 'patch', 'update'], COORDINATION, 'leases'),
  ]),
];

export const NAMESPACED_BINDINGS: readonly Binding[] = [
  roleBinding(
    'kube-system',
    `system::${AUTHENTICATION_READER}`,
    AUTHENTICATION_READER,
    user(CONTROLLER_MANAGER),
    user(SCHEDULER),
  ),
  roleBinding('kube-node-lease', 'system:node', 'system:node', group(NODES)),
];

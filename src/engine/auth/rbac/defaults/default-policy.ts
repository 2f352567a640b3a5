/** The default roles and bindings of a cluster. controllers/rbac/rbac-defaults.ts maintains them. */
import { CONTROLLER_BINDINGS, CONTROLLER_ROLES } from '#engine/auth/rbac/defaults/controller-roles.ts';
import { NAMESPACED_BINDINGS, NAMESPACED_ROLES } from '#engine/auth/rbac/defaults/namespaced-roles.ts';
import { SYSTEM_BINDINGS, SYSTEM_ROLES } from '#engine/auth/rbac/defaults/system-roles.ts';
import { USER_ROLES } from '#engine/auth/rbac/defaults/user-roles.ts';
import type { RbacBinding, RbacClusterRole, RbacRole } from '#engine/auth/rbac/policy.ts';

interface DefaultPolicy {
  readonly clusterRoles: readonly RbacClusterRole[];
  readonly clusterRoleBindings: readonly RbacBinding[];
  readonly roles: readonly RbacRole[];
  readonly roleBindings: readonly RbacBinding[];
}

export const DEFAULT_POLICY: DefaultPolicy = {
  clusterRoles: [...USER_ROLES, ...SYSTEM_ROLES, ...CONTROLLER_ROLES],
  clusterRoleBindings: [...SYSTEM_BINDINGS, ...CONTROLLER_BINDINGS],
  roles: NAMESPACED_ROLES,
  roleBindings: NAMESPACED_BINDINGS,
};

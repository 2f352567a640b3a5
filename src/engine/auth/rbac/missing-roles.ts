/**
 * Formats bound roles that do not exist, like Kubernetes' list of errors: one as it is, several in brackets, without
 * duplicates.
 */
import { RBAC_CLUSTER_ROLES, RBAC_ROLES, type RoleRef } from '#engine/auth/rbac/policy.ts';
import { groupResource } from '#kube/meta.ts';

/** Kubernetes' authorizer says `clusterrole.rbac… "x" not found`, its escalation check `clusterroles.rbac…`. */
export function missingRolesText(missing: readonly RoleRef[], spelling: 'singular' | 'plural'): string {
  const texts = new Set(missing.map(({ kind, name }) => `${resourceNameOf(kind, spelling)} "${name}" not found`));
  const text = [...texts].join(', ');
  return texts.size === 1 ? text : `[${text}]`;
}

function resourceNameOf(kind: string, spelling: 'singular' | 'plural'): string {
  const { group, plural } = kind === 'Role' ? RBAC_ROLES : RBAC_CLUSTER_ROLES;
  return groupResource({ group, plural: spelling === 'plural' ? plural : kind.toLowerCase() });
}

/** Roles that are bound but not there, as Kubernetes' list of errors: one as it is, several in brackets, none twice. */
import { CLUSTER_ROLES, ROLES, type RoleRef } from '#engine/auth/rbac/policy.ts';
import { groupResource } from '#kube/meta.ts';

/** The authorizer of Kubernetes says `clusterrole.rbac… "x" not found`, its check against escalation `clusterroles.rbac…`. */
export function missingRolesText(missing: readonly RoleRef[], spelling: 'singular' | 'plural'): string {
  const texts = new Set(missing.map(({ kind, name }) => `${spelled(kind, spelling)} "${name}" not found`));
  const text = [...texts].join(', ');
  return texts.size === 1 ? text : `[${text}]`;
}

function spelled(kind: string, spelling: 'singular' | 'plural'): string {
  const { group, plural } = kind === 'Role' ? ROLES : CLUSTER_ROLES;
  return groupResource({ group, plural: spelling === 'plural' ? plural : kind.toLowerCase() });
}

/** Accounts of our components: one each, with a role that grants no more than it needs. */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  ROLE_BINDINGS,
  ROLES,
  SERVICE_ACCOUNTS,
  type PolicyRule,
} from '#kube/cluster-kinds.ts';

const RBAC = 'rbac.authorization.k8s.io';

interface Subject {
  readonly kind: 'ServiceAccount' | 'Group';
  readonly name: string;
  readonly namespace?: string;
  readonly apiGroup?: string;
}

export const groupSubject = (name: string): Subject => ({ kind: 'Group', name, apiGroup: RBAC });

/** Returns the name of the cluster role of an account, with a prefix because cluster roles are not namespaced. */
const roleNameOf = (account: string) => `selfsame:${account}`;

export function serviceAccountObject(name: string): DesiredObject {
  return desiredObject(SERVICE_ACCOUNTS, { namespace: SYSTEM_NAMESPACE, name });
}

export function clusterRoleObject(
  name: string,
  rules: readonly PolicyRule[],
  labels?: Record<string, string>,
): DesiredObject {
  return desiredObject(CLUSTER_ROLES, { name, labels }, { rules });
}

export function clusterRoleBindingObject(role: string, ...subjects: readonly Subject[]): DesiredObject {
  return desiredObject(
    CLUSTER_ROLE_BINDINGS,
    { name: role },
    { roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role }, subjects },
  );
}

/** Returns an account, its cluster role and the binding. */
export function accountObjects(name: string, rules: readonly PolicyRule[]): DesiredObject[] {
  const role = roleNameOf(name);
  const subject: Subject = { kind: 'ServiceAccount', name, namespace: SYSTEM_NAMESPACE };
  return [serviceAccountObject(name), clusterRoleObject(role, rules), clusterRoleBindingObject(role, subject)];
}

/** Returns the role of an account in our own namespace, and the binding. */
export function namespacedRoleObjects(name: string, rules: readonly PolicyRule[]): DesiredObject[] {
  const namespace = SYSTEM_NAMESPACE;
  const subject: Subject = { kind: 'ServiceAccount', name, namespace };
  return [
    desiredObject(ROLES, { namespace, name }, { rules }),
    desiredObject(
      ROLE_BINDINGS,
      { namespace, name },
      { roleRef: { apiGroup: RBAC, kind: 'Role', name }, subjects: [subject] },
    ),
  ];
}

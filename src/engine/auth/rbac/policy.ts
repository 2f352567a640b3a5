/** The types and resources of rbac.authorization.k8s.io/v1. */
import type { LabelSelector } from '#kube/label-selector.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface Subject {
  readonly kind: string;
  readonly apiGroup?: string;
  readonly name: string;
  /** Namespace of a service account; absent = that of the binding. */
  readonly namespace?: string;
}

export interface RoleRef {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}

export interface Role extends KubeObject {
  rules?: readonly PolicyRule[] | null;
}

export interface ClusterRole extends Role {
  aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] };
}

export interface Binding extends KubeObject {
  roleRef: RoleRef;
  subjects?: readonly Subject[] | null;
}

const common = { group: RBAC_GROUP, version: 'v1' } as const;

export const ROLES: ResourceType<Role> = { ...common, kind: 'Role', plural: 'roles', namespaced: true };
export const CLUSTER_ROLES: ResourceType<ClusterRole> = {
  ...common,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
};
export const ROLE_BINDINGS: ResourceType<Binding> = {
  ...common,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
};
export const CLUSTER_ROLE_BINDINGS: ResourceType<Binding> = {
  ...common,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
};

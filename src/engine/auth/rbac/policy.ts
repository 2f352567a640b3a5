/** The types and resources of rbac.authorization.k8s.io/v1. */
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';
import { ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS } from '#kube/cluster-kinds.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export interface RbacRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface RbacSubject {
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

export interface RbacRole extends KubeObject {
  rules?: readonly RbacRule[] | null;
}

export interface RbacClusterRole extends RbacRole {
  aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] };
}

export interface RbacBinding extends KubeObject {
  roleRef: RoleRef;
  subjects?: readonly RbacSubject[] | null;
}

export const RBAC_ROLES = resourceAs<RbacRole>(ROLES);
export const RBAC_CLUSTER_ROLES = resourceAs<RbacClusterRole>(CLUSTER_ROLES);
export const RBAC_ROLE_BINDINGS = resourceAs<RbacBinding>(ROLE_BINDINGS);
export const RBAC_CLUSTER_ROLE_BINDINGS = resourceAs<RbacBinding>(CLUSTER_ROLE_BINDINGS);

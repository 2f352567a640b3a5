/** Builds default roles and bindings, with the labels and annotations of Kubernetes' own. */
import {
  type RbacBinding,
  RBAC_CLUSTER_ROLE_BINDINGS,
  RBAC_CLUSTER_ROLES,
  type RbacClusterRole,
  type RbacRule,
  RBAC_GROUP,
  RBAC_ROLE_BINDINGS,
  RBAC_ROLES,
  type RbacRole,
  type RbacSubject,
} from '#engine/auth/rbac/policy.ts';
import { apiVersionOf } from '#kube/meta.ts';

export const DEFAULT_READ_VERBS = ['get', 'list', 'watch'] as const;
export const DEFAULT_WRITE_VERBS = ['create', 'delete', 'deletecollection', 'patch', 'update'] as const;

const BOOTSTRAPPED = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
/** The annotation that, set to "false", prevents repairs of a default object. */
export const AUTOUPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

export const CORE_GROUP = '';
export const COORDINATION = 'coordination.k8s.io';
export const BATCH = 'batch';
export const POLICY = 'policy';

/** `group` applies to all resources; '' is the core group. */
export function resourceRule(verbs: readonly string[], group: string, ...resources: readonly string[]): RbacRule {
  return { apiGroups: [group], resources, verbs };
}

export function pathRule(verbs: readonly string[], ...paths: readonly string[]): RbacRule {
  return { nonResourceURLs: paths, verbs };
}

/** Recording Events includes counting repetitions. */
export const DEFAULT_RECORD_EVENTS_RULE = resourceRule(['create', 'patch', 'update'], CORE_GROUP, 'events');

interface RoleOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** The aggregation controller collects its rules from the roles with this label. */
  readonly aggregates?: string;
}

export function defaultClusterRole(
  name: string,
  rules: readonly RbacRule[],
  options: RoleOptions = {},
): RbacClusterRole {
  const { labels, aggregates } = options;
  const aggregationRule =
    aggregates === undefined ? undefined : { clusterRoleSelectors: [{ matchLabels: { [aggregates]: 'true' } }] };
  return {
    apiVersion: apiVersionOf(RBAC_CLUSTER_ROLES),
    kind: RBAC_CLUSTER_ROLES.kind,
    metadata: { name, ...bootstrapMeta(labels) },
    ...(aggregationRule && { aggregationRule }),
    rules,
  };
}

export function defaultRole(namespace: string, name: string, rules: readonly RbacRule[]): RbacRole {
  return {
    apiVersion: apiVersionOf(RBAC_ROLES),
    kind: RBAC_ROLES.kind,
    metadata: { name, namespace, ...bootstrapMeta() },
    rules,
  };
}

/** Binds the role of the same name. */
export function defaultClusterRoleBinding(name: string, ...subjects: readonly RbacSubject[]): RbacBinding {
  return {
    apiVersion: apiVersionOf(RBAC_CLUSTER_ROLE_BINDINGS),
    kind: RBAC_CLUSTER_ROLE_BINDINGS.kind,
    metadata: { name, ...bootstrapMeta() },
    roleRef: { apiGroup: RBAC_GROUP, kind: RBAC_CLUSTER_ROLES.kind, name },
    subjects,
  };
}

export function defaultRoleBinding(
  namespace: string,
  name: string,
  of: string,
  ...subjects: readonly RbacSubject[]
): RbacBinding {
  return {
    apiVersion: apiVersionOf(RBAC_ROLE_BINDINGS),
    kind: RBAC_ROLE_BINDINGS.kind,
    metadata: { name, namespace, ...bootstrapMeta() },
    roleRef: { apiGroup: RBAC_GROUP, kind: RBAC_ROLES.kind, name: of },
    subjects,
  };
}

export const rbacGroupSubject = (name: string): RbacSubject => ({ kind: 'Group', apiGroup: RBAC_GROUP, name });
export const rbacUserSubject = (name: string): RbacSubject => ({ kind: 'User', apiGroup: RBAC_GROUP, name });
export const rbacAccountSubject = (namespace: string, name: string): RbacSubject => ({
  kind: 'ServiceAccount',
  name,
  namespace,
});

function bootstrapMeta(labels: Readonly<Record<string, string>> = {}) {
  return { labels: { ...labels, ...BOOTSTRAPPED }, annotations: { [AUTOUPDATE]: 'true' } };
}

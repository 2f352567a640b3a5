/** Builds default roles and bindings, with the labels and annotations of Kubernetes' own. */
import {
  type Binding,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  type ClusterRole,
  type PolicyRule,
  RBAC_GROUP,
  ROLE_BINDINGS,
  ROLES,
  type Role,
  type Subject,
} from '#engine/auth/rbac/policy.ts';
import { apiVersionOf } from '#kube/meta.ts';

export const READ = ['get', 'list', 'watch'] as const;
export const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'] as const;

const BOOTSTRAPPED = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
/** Setting it to "false" keeps an object of ours unchanged. */
export const AUTOUPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

export const CORE_GROUP = '';
export const COORDINATION = 'coordination.k8s.io';
export const BATCH = 'batch';
export const POLICY = 'policy';

/** `group` applies to all resources; '' is the core group. */
export function rule(verbs: readonly string[], group: string, ...resources: readonly string[]): PolicyRule {
  return { apiGroups: [group], resources, verbs };
}

export function pathRule(verbs: readonly string[], ...paths: readonly string[]): PolicyRule {
  return { nonResourceURLs: paths, verbs };
}

/** Recording Events includes counting repetitions. */
export const RECORD_EVENTS = rule(['create', 'patch', 'update'], CORE_GROUP, 'events');

export interface RoleOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** The aggregation controller collects its rules from the roles with this label. */
  readonly aggregates?: string;
}

export function clusterRole(name: string, rules: readonly PolicyRule[], options: RoleOptions = {}): ClusterRole {
  const { labels, aggregates } = options;
  const aggregationRule =
    aggregates === undefined ? undefined : { clusterRoleSelectors: [{ matchLabels: { [aggregates]: 'true' } }] };
  return {
    apiVersion: apiVersionOf(CLUSTER_ROLES),
    kind: CLUSTER_ROLES.kind,
    metadata: { name, ...bootstrapMeta(labels) },
    ...(aggregationRule && { aggregationRule }),
    rules,
  };
}

export function role(namespace: string, name: string, rules: readonly PolicyRule[]): Role {
  return {
    apiVersion: apiVersionOf(ROLES),
    kind: ROLES.kind,
    metadata: { name, namespace, ...bootstrapMeta() },
    rules,
  };
}

/** Binds the role of the same name. */
export function clusterRoleBinding(name: string, ...subjects: readonly Subject[]): Binding {
  return {
    apiVersion: apiVersionOf(CLUSTER_ROLE_BINDINGS),
    kind: CLUSTER_ROLE_BINDINGS.kind,
    metadata: { name, ...bootstrapMeta() },
    roleRef: { apiGroup: RBAC_GROUP, kind: CLUSTER_ROLES.kind, name },
    subjects,
  };
}

export function roleBinding(namespace: string, name: string, of: string, ...subjects: readonly Subject[]): Binding {
  return {
    apiVersion: apiVersionOf(ROLE_BINDINGS),
    kind: ROLE_BINDINGS.kind,
    metadata: { name, namespace, ...bootstrapMeta() },
    roleRef: { apiGroup: RBAC_GROUP, kind: ROLES.kind, name: of },
    subjects,
  };
}

export const group = (name: string): Subject => ({ kind: 'Group', apiGroup: RBAC_GROUP, name });
export const user = (name: string): Subject => ({ kind: 'User', apiGroup: RBAC_GROUP, name });
export const account = (namespace: string, name: string): Subject => ({ kind: 'ServiceAccount', name, namespace });

function bootstrapMeta(labels: Readonly<Record<string, string>> = {}) {
  return { labels: { ...labels, ...BOOTSTRAPPED }, annotations: { [AUTOUPDATE]: 'true' } };
}

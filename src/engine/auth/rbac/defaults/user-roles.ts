/**
 * The roles for users: cluster-admin, and admin, edit and view for a namespace. The latter three are aggregated from
 * all roles with their label, so that new kinds can bring their own permissions.
 */
import { RBAC_GROUP, type ClusterRole } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  COORDINATION,
  CORE_GROUP,
  POLICY,
  READ,
  WRITE,
  clusterRole,
  pathRule,
  rule,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const TO_ADMIN = 'rbac.authorization.k8s.io/aggregate-to-admin';
const TO_EDIT = 'rbac.authorization.k8s.io/aggregate-to-edit';
const TO_VIEW = 'rbac.authorization.k8s.io/aggregate-to-view';

const labelled = (label: string) => ({ labels: { [label]: 'true' } });

const VIEW_RULES = [
  rule(READ, CORE_GROUP, 'configmaps', 'events', 'pods', 'pods/log', 'pods/status', 'serviceaccounts'),
  rule(READ, CORE_GROUP, 'persistentvolumeclaims', 'persistentvolumeclaims/status', 'services', 'services/status'),
  // Within a namespace this means the namespace itself, to see where a user has access.
  rule(READ, CORE_GROUP, 'namespaces', 'namespaces/status', 'resourcequotas', 'resourcequotas/status'),
  rule(READ, 'apps', 'controllerrevisions'),
  rule(READ, BATCH, 'jobs', 'jobs/status'),
  rule(READ, POLICY, 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  rule(READ, 'discovery.k8s.io', 'endpointslices'),
];

const EDIT_RULES = [
  // Reading secrets allows acting as others, so viewers may not.
  rule(READ, CORE_GROUP, 'secrets'),
  rule(['impersonate'], CORE_GROUP, 'serviceaccounts'),
  rule(WRITE, CORE_GROUP, 'pods', 'serviceaccounts', 'services', 'persistentvolumeclaims'),
  rule(WRITE, CORE_GROUP, 'configmaps', 'secrets', 'events'),
  rule(['create'], CORE_GROUP, 'pods/eviction', 'serviceaccounts/token'),
  rule(WRITE, BATCH, 'jobs'),
  rule(WRITE, POLICY, 'poddisruptionbudgets'),
  rule([...READ, ...WRITE], COORDINATION, 'leases'),
];

const ADMIN_RULES = [
  rule(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
  rule([...READ, ...WRITE], RBAC_GROUP, 'roles', 'rolebindings'),
];

export const USER_ROLES: readonly ClusterRole[] = [
  clusterRole('cluster-admin', [rule(['*'], '*', '*'), pathRule(['*'], '*')]),
  // Includes the rules that they will aggregate, so that they apply from the start.
  clusterRole('admin', [...EDIT_RULES, ...VIEW_RULES, ...ADMIN_RULES], { aggregates: TO_ADMIN }),
  clusterRole('edit', [...EDIT_RULES, ...VIEW_RULES], { aggregates: TO_EDIT, ...labelled(TO_ADMIN) }),
  clusterRole('view', VIEW_RULES, { aggregates: TO_VIEW, ...labelled(TO_EDIT) }),
  clusterRole('system:aggregate-to-admin', ADMIN_RULES, labelled(TO_ADMIN)),
  clusterRole('system:aggregate-to-edit', EDIT_RULES, labelled(TO_EDIT)),
  clusterRole('system:aggregate-to-view', VIEW_RULES, labelled(TO_VIEW)),
];

/**
 * The roles that people give to people: cluster-admin, and admin, edit and view for a namespace. The latter three are
 * gathered from all roles with their label, so that whoever brings a kind also brings who may use it.
 */
import { RBAC_GROUP, type ClusterRole } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  COORDINATION,
  CORE,
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
  rule(READ, CORE, 'configmaps', 'events', 'pods', 'pods/log', 'pods/status', 'serviceaccounts'),
  rule(READ, CORE, 'persistentvolumeclaims', 'persistentvolumeclaims/status', 'services', 'services/status'),
  // In a namespace this means the namespace itself: a way to see where one has access.
  rule(READ, CORE, 'namespaces', 'namespaces/status', 'resourcequotas', 'resourcequotas/status'),
  rule(READ, 'apps', 'controllerrevisions'),
  rule(READ, BATCH, 'jobs', 'jobs/status'),
  rule(READ, POLICY, 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  rule(READ, 'discovery.k8s.io', 'endpointslices'),
];

const EDIT_RULES = [
  // Who reads these can act as others, so that viewers may not.
  rule(READ, CORE, 'secrets'),
  rule(['impersonate'], CORE, 'serviceaccounts'),
  rule(WRITE, CORE, 'pods', 'serviceaccounts', 'services', 'persistentvolumeclaims'),
  rule(WRITE, CORE, 'configmaps', 'secrets', 'events'),
  rule(['create'], CORE, 'pods/eviction', 'serviceaccounts/token'),
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
  // With what they will gather, so that they hold from the first moment on.
  clusterRole('admin', [...EDIT_RULES, ...VIEW_RULES, ...ADMIN_RULES], { aggregates: TO_ADMIN }),
  clusterRole('edit', [...EDIT_RULES, ...VIEW_RULES], { aggregates: TO_EDIT, ...labelled(TO_ADMIN) }),
  clusterRole('view', VIEW_RULES, { aggregates: TO_VIEW, ...labelled(TO_EDIT) }),
  clusterRole('system:aggregate-to-admin', ADMIN_RULES, labelled(TO_ADMIN)),
  clusterRole('system:aggregate-to-edit', EDIT_RULES, labelled(TO_EDIT)),
  clusterRole('system:aggregate-to-view', VIEW_RULES, labelled(TO_VIEW)),
];

/**
 * The roles for users: cluster-admin, and admin, edit and view for a namespace. The latter three are aggregated from
 * all roles with their label, so that new kinds can bring their own permissions.
 */
import { RBAC_GROUP, type RbacClusterRole } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  COORDINATION,
  CORE_GROUP,
  POLICY,
  DEFAULT_READ_VERBS,
  DEFAULT_WRITE_VERBS,
  defaultClusterRole,
  pathRule,
  resourceRule,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const TO_ADMIN = 'rbac.authorization.k8s.io/aggregate-to-admin';
const TO_EDIT = 'rbac.authorization.k8s.io/aggregate-to-edit';
const TO_VIEW = 'rbac.authorization.k8s.io/aggregate-to-view';

const labelled = (label: string) => ({ labels: { [label]: 'true' } });

const VIEW_RULES = [
  resourceRule(
    DEFAULT_READ_VERBS,
    CORE_GROUP,
    'configmaps',
    'events',
    'pods',
    'pods/log',
    'pods/status',
    'serviceaccounts',
  ),
  resourceRule(
    DEFAULT_READ_VERBS,
    CORE_GROUP,
    'persistentvolumeclaims',
    'persistentvolumeclaims/status',
    'services',
    'services/status',
  ),
  // Within a namespace this means the namespace itself, to see where a user has access.
  resourceRule(
    DEFAULT_READ_VERBS,
    CORE_GROUP,
    'limitranges',
    'namespaces',
    'namespaces/status',
    'resourcequotas',
    'resourcequotas/status',
  ),
  resourceRule(DEFAULT_READ_VERBS, 'apps', 'controllerrevisions'),
  resourceRule(DEFAULT_READ_VERBS, BATCH, 'jobs', 'jobs/status'),
  resourceRule(DEFAULT_READ_VERBS, POLICY, 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  resourceRule(DEFAULT_READ_VERBS, 'discovery.k8s.io', 'endpointslices'),
];

const EDIT_RULES = [
  // A user who can read Secrets can use the tokens in them, so viewers cannot read Secrets.
  resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'secrets'),
  resourceRule(['impersonate'], CORE_GROUP, 'serviceaccounts'),
  resourceRule(DEFAULT_WRITE_VERBS, CORE_GROUP, 'pods', 'serviceaccounts', 'services', 'persistentvolumeclaims'),
  resourceRule(DEFAULT_WRITE_VERBS, CORE_GROUP, 'configmaps', 'secrets', 'events'),
  resourceRule(['create'], CORE_GROUP, 'pods/eviction', 'serviceaccounts/token'),
  resourceRule(DEFAULT_WRITE_VERBS, BATCH, 'jobs'),
  resourceRule(DEFAULT_WRITE_VERBS, POLICY, 'poddisruptionbudgets'),
  resourceRule([...DEFAULT_READ_VERBS, ...DEFAULT_WRITE_VERBS], COORDINATION, 'leases'),
];

const ADMIN_RULES = [
  resourceRule(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
  resourceRule([...DEFAULT_READ_VERBS, ...DEFAULT_WRITE_VERBS], RBAC_GROUP, 'roles', 'rolebindings'),
];

export const USER_ROLES: readonly RbacClusterRole[] = [
  defaultClusterRole('cluster-admin', [resourceRule(['*'], '*', '*'), pathRule(['*'], '*')]),
  // Includes the rules that they will aggregate, so that they apply from the start.
  defaultClusterRole('admin', [...EDIT_RULES, ...VIEW_RULES, ...ADMIN_RULES], { aggregates: TO_ADMIN }),
  defaultClusterRole('edit', [...EDIT_RULES, ...VIEW_RULES], { aggregates: TO_EDIT, ...labelled(TO_ADMIN) }),
  defaultClusterRole('view', VIEW_RULES, { aggregates: TO_VIEW, ...labelled(TO_EDIT) }),
  defaultClusterRole('system:aggregate-to-admin', ADMIN_RULES, labelled(TO_ADMIN)),
  defaultClusterRole('system:aggregate-to-edit', EDIT_RULES, labelled(TO_EDIT)),
  defaultClusterRole('system:aggregate-to-view', VIEW_RULES, labelled(TO_VIEW)),
];

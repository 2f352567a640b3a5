/**
 * One role for each controller of the engine, `system:controller:<account>`, bound to that account in kube-system.
 * Controllers read through shared informers (system:kube-controller-manager); these roles cover their own lookups and
 * writes. A patch may need a get to see what it conflicted with.
 */
import { RBAC_GROUP, type RbacBinding, type RbacClusterRole, type RbacRule } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  CORE_GROUP,
  POLICY,
  DEFAULT_READ_VERBS,
  DEFAULT_RECORD_EVENTS_RULE,
  rbacAccountSubject,
  defaultClusterRole,
  defaultClusterRoleBinding,
  resourceRule,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const ADMISSION = 'admissionregistration.k8s.io';
const DISCOVERY = 'discovery.k8s.io';
const DEFINITIONS = 'apiextensions.k8s.io';
const REGISTRATION = 'apiregistration.k8s.io';
const CHANGE = ['patch', 'update'] as const;

/** Rules by account. */
const RULES: Readonly<Record<string, readonly RbacRule[]>> = {
  'namespace-controller': [
    // Everything in a namespace is deleted with it, whatever its kind.
    resourceRule([...DEFAULT_READ_VERBS, 'delete', 'deletecollection'], '*', '*'),
    resourceRule(CHANGE, CORE_GROUP, 'namespaces/finalize', 'namespaces/status'),
  ],
  'crd-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE], DEFINITIONS, 'customresourcedefinitions'),
    resourceRule(CHANGE, DEFINITIONS, 'customresourcedefinitions/status'),
    // The objects of a kind are deleted with its definition, whatever its group.
    resourceRule([...DEFAULT_READ_VERBS, 'delete', 'deletecollection'], '*', '*'),
  ],
  'generic-garbage-collector': [resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'delete'], '*', '*')],
  'job-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE], BATCH, 'jobs'),
    resourceRule(CHANGE, BATCH, 'jobs/status', 'jobs/finalizers'),
    resourceRule([...DEFAULT_READ_VERBS, 'create', 'delete', 'patch'], CORE_GROUP, 'pods'),
  ],
  'ttl-after-finished-controller': [resourceRule([...DEFAULT_READ_VERBS, 'delete'], BATCH, 'jobs')],
  'node-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'delete'], CORE_GROUP, 'nodes'),
    resourceRule(CHANGE, CORE_GROUP, 'nodes/status', 'pods/status'),
    resourceRule([...DEFAULT_READ_VERBS, 'delete'], CORE_GROUP, 'pods'),
  ],
  'pod-garbage-collector': [
    resourceRule([...DEFAULT_READ_VERBS, 'delete'], CORE_GROUP, 'pods'),
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'nodes'),
    resourceRule(CHANGE, CORE_GROUP, 'pods/status'),
  ],
  'disruption-controller': [
    resourceRule(DEFAULT_READ_VERBS, POLICY, 'poddisruptionbudgets'),
    resourceRule(CHANGE, POLICY, 'poddisruptionbudgets/status'),
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'pods'),
    resourceRule(CHANGE, CORE_GROUP, 'pods/status'),
    resourceRule(['get'], '*', '*/scale'),
  ],
  'endpointslice-controller': [
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'nodes', 'pods', 'services'),
    // Setting an owner reference that blocks its deletion needs this.
    resourceRule(['update'], CORE_GROUP, 'services/finalizers'),
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'create', 'delete'], DISCOVERY, 'endpointslices'),
  ],
  'service-controller': [
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'nodes', 'services'),
    resourceRule(CHANGE, CORE_GROUP, 'services/status'),
  ],
  'persistent-volume-binder': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE], CORE_GROUP, 'persistentvolumes', 'persistentvolumeclaims'),
    resourceRule(CHANGE, CORE_GROUP, 'persistentvolumes/status', 'persistentvolumeclaims/status'),
  ],
  'pvc-protection-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE], CORE_GROUP, 'persistentvolumeclaims'),
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'pods'),
  ],
  'pv-protection-controller': [resourceRule([...DEFAULT_READ_VERBS, ...CHANGE], CORE_GROUP, 'persistentvolumes')],
  'resourcequota-controller': [resourceRule(CHANGE, CORE_GROUP, 'resourcequotas/status')],
  'service-account-controller': [resourceRule(['create', 'get'], CORE_GROUP, 'serviceaccounts')],
  'service-account-token-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'delete'], CORE_GROUP, 'secrets'),
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'serviceaccounts'),
  ],
  'root-ca-cert-publisher': [resourceRule(['create', 'get', ...CHANGE], CORE_GROUP, 'configmaps')],
  'clusterrole-aggregation-controller': [
    // The aggregation controller collects rules that it does not hold itself.
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'escalate'], RBAC_GROUP, 'clusterroles'),
  ],
  'apiservice-controller': [
    resourceRule([...DEFAULT_READ_VERBS, ...CHANGE, 'create', 'delete'], REGISTRATION, 'apiservices'),
    resourceRule(CHANGE, REGISTRATION, 'apiservices/status'),
    resourceRule(DEFAULT_READ_VERBS, CORE_GROUP, 'services'),
  ],
  'validatingadmissionpolicy-status-controller': [
    resourceRule(DEFAULT_READ_VERBS, ADMISSION, 'validatingadmissionpolicies'),
    resourceRule(['get', ...CHANGE], ADMISSION, 'validatingadmissionpolicies/status'),
  ],
};

export const CONTROLLER_ACCOUNTS: readonly string[] = Object.keys(RULES);

const roleName = (name: string) => `system:controller:${name}`;

export const CONTROLLER_ROLES: readonly RbacClusterRole[] = Object.entries(RULES).map(([name, rules]) =>
  defaultClusterRole(roleName(name), [...rules, DEFAULT_RECORD_EVENTS_RULE]),
);

export const CONTROLLER_BINDINGS: readonly RbacBinding[] = CONTROLLER_ACCOUNTS.map((name) =>
  defaultClusterRoleBinding(roleName(name), rbacAccountSubject('kube-system', name)),
);

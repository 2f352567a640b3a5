/**
 * One role for each controller of the engine, `system:controller:<account>`, bound to that account in kube-system.
 * Controllers read through shared informers (system:kube-controller-manager); these roles cover their own lookups and
 * writes. A patch may need a get to see what it conflicted with.
 */
import { RBAC_GROUP, type Binding, type ClusterRole, type PolicyRule } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  CORE_GROUP,
  POLICY,
  READ,
  RECORD_EVENTS,
  account,
  clusterRole,
  clusterRoleBinding,
  rule,
} from '#engine/auth/rbac/defaults/build-policy.ts';

const ADMISSION = 'admissionregistration.k8s.io';
const DEFINITIONS = 'apiextensions.k8s.io';
const REGISTRATION = 'apiregistration.k8s.io';
const CHANGE = ['patch', 'update'] as const;

/** Rules by account. */
const RULES: Readonly<Record<string, readonly PolicyRule[]>> = {
  'namespace-controller': [
    // Everything in a namespace is deleted with it, whatever its kind.
    rule([...READ, 'delete', 'deletecollection'], '*', '*'),
    rule(CHANGE, CORE_GROUP, 'namespaces/finalize', 'namespaces/status'),
  ],
  'crd-controller': [
    rule([...READ, ...CHANGE], DEFINITIONS, 'customresourcedefinitions'),
    rule(CHANGE, DEFINITIONS, 'customresourcedefinitions/status'),
    // The objects of a kind are deleted with its definition, whatever its group.
    rule([...READ, 'delete', 'deletecollection'], '*', '*'),
  ],
  'generic-garbage-collector': [rule([...READ, ...CHANGE, 'delete'], '*', '*')],
  'job-controller': [
    rule([...READ, ...CHANGE], BATCH, 'jobs'),
    rule(CHANGE, BATCH, 'jobs/status', 'jobs/finalizers'),
    rule([...READ, 'create', 'delete', 'patch'], CORE_GROUP, 'pods'),
  ],
  'ttl-after-finished-controller': [rule([...READ, 'delete'], BATCH, 'jobs')],
  'node-controller': [
    rule([...READ, ...CHANGE, 'delete'], CORE_GROUP, 'nodes'),
    rule(CHANGE, CORE_GROUP, 'nodes/status', 'pods/status'),
    rule([...READ, 'delete'], CORE_GROUP, 'pods'),
  ],
  'pod-garbage-collector': [
    rule([...READ, 'delete'], CORE_GROUP, 'pods'),
    rule(READ, CORE_GROUP, 'nodes'),
    rule(CHANGE, CORE_GROUP, 'pods/status'),
  ],
  'disruption-controller': [
    rule(READ, POLICY, 'poddisruptionbudgets'),
    rule(CHANGE, POLICY, 'poddisruptionbudgets/status'),
    rule(READ, CORE_GROUP, 'pods'),
    rule(CHANGE, CORE_GROUP, 'pods/status'),
    rule(['get'], '*', '*/scale'),
  ],
  'persistent-volume-binder': [
    rule([...READ, ...CHANGE], CORE_GROUP, 'persistentvolumes', 'persistentvolumeclaims'),
    rule(CHANGE, CORE_GROUP, 'persistentvolumes/status', 'persistentvolumeclaims/status'),
  ],
  'pvc-protection-controller': [
    rule([...READ, ...CHANGE], CORE_GROUP, 'persistentvolumeclaims'),
    rule(READ, CORE_GROUP, 'pods'),
  ],
  'pv-protection-controller': [rule([...READ, ...CHANGE], CORE_GROUP, 'persistentvolumes')],
  'service-account-controller': [rule(['create', 'get'], CORE_GROUP, 'serviceaccounts')],
  'service-account-token-controller': [
    rule([...READ, ...CHANGE, 'delete'], CORE_GROUP, 'secrets'),
    rule(READ, CORE_GROUP, 'serviceaccounts'),
  ],
  'root-ca-cert-publisher': [rule(['create', 'get', ...CHANGE], CORE_GROUP, 'configmaps')],
  'clusterrole-aggregation-controller': [
    // The aggregation controller collects rules that it does not hold itself.
    rule([...READ, ...CHANGE, 'escalate'], RBAC_GROUP, 'clusterroles'),
  ],
  'apiservice-controller': [
    rule([...READ, ...CHANGE, 'create', 'delete'], REGISTRATION, 'apiservices'),
    rule(CHANGE, REGISTRATION, 'apiservices/status'),
    rule(READ, CORE_GROUP, 'services'),
  ],
  'validatingadmissionpolicy-status-controller': [
    rule(READ, ADMISSION, 'validatingadmissionpolicies'),
    rule(['get', ...CHANGE], ADMISSION, 'validatingadmissionpolicies/status'),
  ],
};

export const CONTROLLER_ACCOUNTS: readonly string[] = Object.keys(RULES);

const roleName = (name: string) => `system:controller:${name}`;

export const CONTROLLER_ROLES: readonly ClusterRole[] = Object.entries(RULES).map(([name, rules]) =>
  clusterRole(roleName(name), [...rules, RECORD_EVENTS]),
);

export const CONTROLLER_BINDINGS: readonly Binding[] = CONTROLLER_ACCOUNTS.map((name) =>
  clusterRoleBinding(roleName(name), account('kube-system', name)),
);

/**
 * One role for each controller of the engine, `system:controller:<account>`, bound to that account in kube-system.
 * Controllers read through shared informers (system:kube-controller-manager); these roles cover their own lookups and
 * writes. A patch may need a get to see what it conflicted with.
 */
import { RBAC_GROUP, type Binding, type ClusterRole, type PolicyRule } from '#engine/auth/rbac/policy.ts';
import {
  BATCH,
  CORE,
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
    rule(CHANGE, CORE, 'namespaces/finalize', 'namespaces/status'),
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
    rule([...READ, 'create', 'delete', 'patch'], CORE, 'pods'),
  ],
  'ttl-after-finished-controller': [rule([...READ, 'delete'], BATCH, 'jobs')],
  'node-controller': [
    rule([...READ, ...CHANGE, 'delete'], CORE, 'nodes'),
    rule(CHANGE, CORE, 'nodes/status', 'pods/status'),
    rule([...READ, 'delete'], CORE, 'pods'),
  ],
  'pod-garbage-collector': [
    rule([...READ, 'delete'], CORE, 'pods'),
    rule(READ, CORE, 'nodes'),
    rule(CHANGE, CORE, 'pods/status'),
  ],
  'disruption-controller': [
    rule(READ, POLICY, 'poddisruptionbudgets'),
    rule(CHANGE, POLICY, 'poddisruptionbudgets/status'),
    rule(READ, CORE, 'pods'),
    rule(CHANGE, CORE, 'pods/status'),
    rule(['get'], '*', '*/scale'),
  ],
  'persistent-volume-binder': [
    rule([...READ, ...CHANGE], CORE, 'persistentvolumes', 'persistentvolumeclaims'),
    rule(CHANGE, CORE, 'persistentvolumes/status', 'persistentvolumeclaims/status'),
  ],
  'pvc-protection-controller': [rule([...READ, ...CHANGE], CORE, 'persistentvolumeclaims'), rule(READ, CORE, 'pods')],
  'pv-protection-controller': [rule([...READ, ...CHANGE], CORE, 'persistentvolumes')],
  'service-account-controller': [rule(['create', 'get'], CORE, 'serviceaccounts')],
  'service-account-token-controller': [
    rule([...READ, ...CHANGE, 'delete'], CORE, 'secrets'),
    rule(READ, CORE, 'serviceaccounts'),
  ],
  'root-ca-cert-publisher': [rule(['create', 'get', ...CHANGE], CORE, 'configmaps')],
  'clusterrole-aggregation-controller': [
    // The aggregation controller collects rules that it does not hold itself.
    rule([...READ, ...CHANGE, 'escalate'], RBAC_GROUP, 'clusterroles'),
  ],
  'apiservice-controller': [
    rule([...READ, ...CHANGE, 'create', 'delete'], REGISTRATION, 'apiservices'),
    rule(CHANGE, REGISTRATION, 'apiservices/status'),
    rule(READ, CORE, 'services'),
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

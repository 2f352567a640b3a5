/**
 * Objects that only an existing cluster needs, where our components are separate processes: the account of the
 * controllers process, the services through which the API server reaches it, and the driver of our volumes. An
 * administrator applies them (selfsame install); the operator does not maintain them.
 */
import { LOCAL_DRIVER, SYSTEM_NAMESPACE } from '#api/names.ts';
import type { ResourceType } from '#kube/meta.ts';
import { bootstrapObjects } from '#operator/bootstrap.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { ROLE_BINDINGS, SERVICE_ACCOUNTS, SERVICES } from '#kube/cluster-kinds.ts';
import { namespacedRoleObjects, serviceAccountObject } from '#operator/objects/accounts.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { CORE, RECORD_EVENTS_RULE, policyRule } from '#operator/roles/rules.ts';

export const CONTROLLERS_ACCOUNT = 'selfsame-controllers';
export const SERVICE_PORT_NAME = 'https';
export const CLUSTER_SERVICES = [WEBHOOK_SERVICE, SUBRESOURCES_SERVICE] as const;
/** The secret in which plane/cluster/ stores our certificate authorities. */
export const AUTHORITY_SECRET = 'selfsame-ca';
const RBAC = 'rbac.authorization.k8s.io';

export const CSI_DRIVERS: ResourceType = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  namespaced: false,
};

/** Returns the accounts that a controllers process uses. */
function ownAccounts(): string[] {
  const all = [...bootstrapObjects(), ...maintainedObjects].filter(({ type }) => type === SERVICE_ACCOUNTS);
  return [...all.map(({ object }) => object.metadata.name ?? ''), CONTROLLERS_ACCOUNT].toSorted();
}

/** Returns the objects in the order of creation; the namespace must exist. */
export function clusterObjects(): readonly DesiredObject[] {
  const ruleForNames = (verbs: readonly string[], resource: string, ...resourceNames: readonly string[]) => ({
    ...policyRule(verbs, CORE, resource),
    resourceNames: [...resourceNames],
  });
  return [
    serviceAccountObject(CONTROLLERS_ACCOUNT),
    ...namespacedRoleObjects(CONTROLLERS_ACCOUNT, [
      RECORD_EVENTS_RULE,
      // Each controller uses its own account.
      ruleForNames(['create'], 'serviceaccounts/token', ...ownAccounts()),
      // Leader election, and the list of processes.
      policyRule(['get', 'list', 'create', 'update', 'patch', 'delete'], 'coordination.k8s.io', 'leases'),
      // Our certificate authorities.
      policyRule(['create'], CORE, 'secrets'),
      ruleForNames(['get', 'update'], 'secrets', AUTHORITY_SECRET),
      // The addresses of our services.
      policyRule(['get', 'create'], CORE, 'endpoints'),
      ruleForNames(['update'], 'endpoints', ...CLUSTER_SERVICES),
      policyRule(['list', 'create', 'delete'], 'discovery.k8s.io', 'endpointslices'),
    ]),
    // The certificate authority of the API server's requests to the aggregated API.
    desiredObject(
      ROLE_BINDINGS,
      { namespace: 'kube-system', name: CONTROLLERS_ACCOUNT },
      {
        roleRef: { apiGroup: RBAC, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
        subjects: [{ kind: 'ServiceAccount', name: CONTROLLERS_ACCOUNT, namespace: SYSTEM_NAMESPACE }],
      },
    ),
    ...CLUSTER_SERVICES.map((name) =>
      desiredObject(
        SERVICES,
        { namespace: SYSTEM_NAMESPACE, name },
        // No selector: the processes need not be pods.
        { spec: { ports: [{ name: SERVICE_PORT_NAME, port: 443, protocol: 'TCP', targetPort: 443 }] } },
      ),
    ),
    // Otherwise the cluster would wait for our volumes to be attached.
    desiredObject(
      CSI_DRIVERS,
      { name: LOCAL_DRIVER },
      { spec: { attachRequired: false, podInfoOnMount: false, volumeLifecycleModes: ['Persistent'] } },
    ),
  ];
}

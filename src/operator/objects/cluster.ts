/**
 * What our parts need on a cluster beside what the operator keeps, because there they are processes of their own: the account
 * under which a controllers process starts, the services by which the API server reaches it, and the driver of our volumes.
 * An administrator applies it (selfsame install); nobody else writes it.
 */
import { LOCAL_DRIVER, SYSTEM_NAMESPACE } from '#api/names.ts';
import type { ResourceType } from '#kube/meta.ts';
import { bootstrapObjects } from '#operator/bootstrap.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { ROLE_BINDINGS, SERVICE_ACCOUNTS } from '#operator/kinds.ts';
import { inSystemNamespace, serviceAccount } from '#operator/objects/accounts.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { installation } from '#operator/objects/installation.ts';
import { WEBHOOK_SERVICE } from '#operator/objects/webhooks.ts';
import { CORE, RECORD_EVENTS, rule } from '#operator/roles/rules.ts';

export const CONTROLLERS_ACCOUNT = 'selfsame-controllers';
export const SERVICE_PORT_NAME = 'https';
export const CLUSTER_SERVICES = [WEBHOOK_SERVICE, SUBRESOURCES_SERVICE] as const;
/** Our authorities, as plane/cluster/ keeps them. */
export const AUTHORITY_SECRET = 'selfsame-ca';
const RBAC = 'rbac.authorization.k8s.io';

const SERVICES: ResourceType = { group: '', version: 'v1', kind: 'Service', plural: 'services', namespaced: true };
export const CSI_DRIVERS: ResourceType = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  namespaced: false,
};

/** Under whose names a controllers process acts. */
function ownAccounts(): string[] {
  const all = [...bootstrapObjects(), ...installation].filter(({ type }) => type === SERVICE_ACCOUNTS);
  return [...all.map(({ object }) => object.metadata.name ?? ''), CONTROLLERS_ACCOUNT].toSorted();
}

/** In the order in which they are applied; the namespace must be there. */
export function clusterObjects(): readonly Desired[] {
  const named = (verbs: readonly string[], resource: string, ...resourceNames: readonly string[]) => ({
    ...rule(verbs, CORE, resource),
    resourceNames: [...resourceNames],
  });
  return [
    serviceAccount(CONTROLLERS_ACCOUNT),
    ...inSystemNamespace(CONTROLLERS_ACCOUNT, [
      RECORD_EVENTS,
      // Each part acts under its own account.
      named(['create'], 'serviceaccounts/token', ...ownAccounts()),
      // Who leads, and which processes there are.
      rule(['get', 'list', 'create', 'update', 'patch', 'delete'], 'coordination.k8s.io', 'leases'),
      // Our authorities.
      rule(['create'], CORE, 'secrets'),
      named(['get', 'update'], 'secrets', AUTHORITY_SECRET),
      // Where our services are.
      rule(['get', 'create'], CORE, 'endpoints'),
      named(['update'], 'endpoints', ...CLUSTER_SERVICES),
      rule(['list', 'create', 'delete'], 'discovery.k8s.io', 'endpointslices'),
    ]),
    // Whom the aggregated API may believe.
    desired(
      ROLE_BINDINGS,
      { namespace: 'kube-system', name: CONTROLLERS_ACCOUNT },
      {
        roleRef: { apiGroup: RBAC, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
        subjects: [{ kind: 'ServiceAccount', name: CONTROLLERS_ACCOUNT, namespace: SYSTEM_NAMESPACE }],
      },
    ),
    ...CLUSTER_SERVICES.map((name) =>
      desired(
        SERVICES,
        { namespace: SYSTEM_NAMESPACE, name },
        // Without a selector: the processes need not be pods.
        { spec: { ports: [{ name: SERVICE_PORT_NAME, port: 443, protocol: 'TCP', targetPort: 443 }] } },
      ),
    ),
    // Else the cluster would wait for somebody to attach our volumes.
    desired(
      CSI_DRIVERS,
      { name: LOCAL_DRIVER },
      { spec: { attachRequired: false, podInfoOnMount: false, volumeLifecycleModes: ['Persistent'] } },
    ),
  ];
}

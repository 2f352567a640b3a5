/** Kubernetes' kinds that configure a cluster: access, admission, services and APIs. */
import type { ConditionedObject } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface PolicyRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role extends KubeObject {
  readonly rules: readonly PolicyRule[];
}

const cluster = <T extends KubeObject = KubeObject>(group: string, kind: string, plural: string): ResourceType<T> => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: false,
});
const namespaced = <T extends KubeObject = KubeObject>(
  group: string,
  kind: string,
  plural: string,
): ResourceType<T> => ({ group, version: 'v1', kind, plural, namespaced: true });

const RBAC = 'rbac.authorization.k8s.io';
export const ADMISSION_GROUP = 'admissionregistration.k8s.io';

export const SERVICES = namespaced('', 'Service', 'services');
export const ENDPOINT_SLICES = namespaced('discovery.k8s.io', 'EndpointSlice', 'endpointslices');
/** The label of an EndpointSlice with the name of its Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
export const SERVICE_ACCOUNTS = namespaced('', 'ServiceAccount', 'serviceaccounts');
export const CLUSTER_ROLES = cluster<Role>(RBAC, 'ClusterRole', 'clusterroles');
export const CLUSTER_ROLE_BINDINGS = cluster(RBAC, 'ClusterRoleBinding', 'clusterrolebindings');
export const ROLES = namespaced<Role>(RBAC, 'Role', 'roles');
export const ROLE_BINDINGS = namespaced(RBAC, 'RoleBinding', 'rolebindings');
export const MUTATING_WEBHOOKS = cluster(
  ADMISSION_GROUP,
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
);
export const VALIDATING_WEBHOOKS = cluster(
  ADMISSION_GROUP,
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
);
export const POLICIES = cluster<ConditionedObject>(
  ADMISSION_GROUP,
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
);
export const POLICY_BINDINGS = cluster(
  ADMISSION_GROUP,
  'ValidatingAdmissionPolicyBinding',
  'validatingadmissionpolicybindings',
);
export const API_SERVICES = cluster<ConditionedObject>('apiregistration.k8s.io', 'APIService', 'apiservices');

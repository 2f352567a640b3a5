/** User names of our own components at the API server. */
import { SYSTEM_NAMESPACE } from '#api/names.ts';

export const accountOf = (name: string) => `system:serviceaccount:${SYSTEM_NAMESPACE}:${name}`;

/** Reports whether a user of the API server is one of our components. */
export const isOwnAccount = (user: string) => user.startsWith(accountOf(''));

/** The only user that writes PROTECTED_VMS_ANNOTATION. */
export const PROTECTION_ACCOUNT = accountOf('protection-controller');

const kubeSystem = (name: string) => `system:serviceaccount:kube-system:${name}`;
/** The user of all built-in controllers if kube-controller-manager runs without --use-service-account-credentials. */
const CONTROLLER_MANAGER = 'system:kube-controller-manager';
const GARBAGE_COLLECTOR = kubeSystem('generic-garbage-collector');

/** Users that delete everything in a namespace whose deletion was accepted. */
export const NAMESPACE_DELETERS: readonly string[] = [kubeSystem('namespace-controller'), CONTROLLER_MANAGER];

/** Users that may change identity records of VMs. The garbage collector removes owner references of orphans. */
export const RECORD_WRITERS: readonly string[] = [
  ...['vm-controller', 'device-map-controller', 'restore-controller'].map(accountOf),
  GARBAGE_COLLECTOR,
  CONTROLLER_MANAGER,
];

/**
 * Users that may delete identity records of VMs: they delete dependents of deleted objects. Only the embedded engine
 * has a crd-controller; a kube-apiserver deletes the objects of a definition without calling admission.
 */
export const RECORD_DELETERS: readonly string[] = [
  GARBAGE_COLLECTOR,
  ...['namespace-controller', 'crd-controller'].map(kubeSystem),
  CONTROLLER_MANAGER,
];

/** Users that give launcher pods their addresses. */
export const POD_ADDRESS_WRITERS: readonly string[] = ['vmi-controller', 'migration-controller'].map(accountOf);

/** Users that may write NetworkAddresses. The crd-controller deletes them with their definition. */
export const ADDRESS_WRITERS: readonly string[] = [
  accountOf('network-address-controller'),
  kubeSystem('crd-controller'),
  CONTROLLER_MANAGER,
];

/**
 * Users that may replace claims of protected VMs, which can be restored and migrated as well. They may delete only claims
 * that they have marked before (REPLACED_BY_ANNOTATION).
 */
export const CLAIM_REPLACERS: readonly string[] = [accountOf('restore-controller'), accountOf('migration-controller')];

/** Users, besides nodes, that may change the annotations of volumes that protected VMs need. */
export const VOLUME_KEEPERS: readonly string[] = [
  ...['migration-controller', 'storage-controller'].map(accountOf),
  PROTECTION_ACCOUNT,
];

/** Users that may change the claims that the status of a VM names. */
export const STATUS_CLAIM_WRITERS: readonly string[] = ['vm-controller', 'selfsame-subresources'].map(accountOf);

/**
 * Users that may change the owner and the state marks of claims that protected VMs need. The garbage collector removes
 * owner references of orphans.
 */
export const CLAIM_KEEPERS: readonly string[] = [
  ...CLAIM_REPLACERS,
  accountOf('selfsame-subresources'),
  GARBAGE_COLLECTOR,
  CONTROLLER_MANAGER,
];

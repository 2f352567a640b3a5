/** Kubernetes' annotations and finalizers for binding, provisioning, scheduling and protecting volumes. */

/** On volumes: the provisioner that created them. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** On claims that wait for a volume: the provisioner that must create it. Set by the binder. */
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
/** On claims that wait for their first consumer: the node of that consumer. Set by the scheduler. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** Prevents the deletion of a volume while a claim is bound to it. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

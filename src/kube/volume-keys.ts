/** The words by which those who bind, make, place and protect volumes know each other. Kubernetes' own. */

/** On volumes: who made them. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** On claims that wait for somebody to make their volume: who is to. Set by the binder. */
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
/** On claims that wait for their first consumer: where it is to run. Set by the scheduler. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** Holds a volume while a claim is bound to it. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

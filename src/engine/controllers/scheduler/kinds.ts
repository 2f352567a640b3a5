/** The kinds that the scheduler reads, with only the fields that it uses. */
import type { NodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { taint, podTolerationSchema } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export type Taint = Infer<typeof taint>;
export type Toleration = Infer<typeof podTolerationSchema>;

export interface SchedulerClaim extends KubeObject {
  spec?: { volumeName?: string; storageClassName?: string };
  status?: { phase?: string };
}

export interface SchedulerVolume extends KubeObject {
  spec?: { nodeAffinity?: { required?: NodeSelector } };
}

export interface SchedulerStorageClass extends KubeObject {
  volumeBindingMode?: string;
  allowedTopologies?: { matchLabelExpressions?: { key: string; values: string[] }[] }[];
}

const core = { group: '', version: 'v1' };

export const SCHEDULER_CLAIMS: ResourceType<SchedulerClaim> = {
  ...core,
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
};
export const SCHEDULER_VOLUMES: ResourceType<SchedulerVolume> = {
  ...core,
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  namespaced: false,
};
export const SCHEDULER_STORAGE_CLASSES: ResourceType<SchedulerStorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};

export type OptionalLabels = Readonly<Record<string, string>> | undefined;

/** Returns a label, or undefined. Keys come from users, so properties of Object.prototype must not match. */
export function labelOf(labels: OptionalLabels, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

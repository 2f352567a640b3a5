/** The kinds that scheduling looks at, as far as it does. */
import type { NodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { taint, toleration } from '#engine/registry/kinds/shared/scheduling.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export type Taint = Infer<typeof taint>;
export type Toleration = Infer<typeof toleration>;

export interface Claim extends KubeObject {
  spec?: { volumeName?: string; storageClassName?: string };
  status?: { phase?: string };
}

export interface Volume extends KubeObject {
  spec?: { nodeAffinity?: { required?: NodeSelector } };
}

export interface StorageClass extends KubeObject {
  volumeBindingMode?: string;
  allowedTopologies?: { matchLabelExpressions?: { key: string; values: string[] }[] }[];
}

const core = { group: '', version: 'v1' };

export const CLAIMS: ResourceType<Claim> = {
  ...core,
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
};
export const VOLUMES: ResourceType<Volume> = {
  ...core,
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  namespaced: false,
};
export const STORAGE_CLASSES: ResourceType<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};

export type Labels = Readonly<Record<string, string>> | undefined;

/** Keys come from users: what every object inherits is no label. */
export function labelOf(labels: Labels, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

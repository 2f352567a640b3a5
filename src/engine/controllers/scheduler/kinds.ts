/** The kinds that the scheduler reads, with only the fields that it uses. */
import type { NodeSelector } from '#engine/controllers/scheduler/node-selector.ts';
import type { taint, podTolerationSchema } from '#engine/registry/kinds/shared/scheduling.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';

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

export const SCHEDULER_CLAIMS = resourceAs<SchedulerClaim>(PERSISTENT_VOLUME_CLAIMS);
export const SCHEDULER_VOLUMES = resourceAs<SchedulerVolume>(PERSISTENT_VOLUMES);
export const SCHEDULER_STORAGE_CLASSES = resourceAs<SchedulerStorageClass>(STORAGE_CLASSES);

export type OptionalLabels = Readonly<Record<string, string>> | undefined;

/** Returns a label, or undefined. Keys come from users, so properties of Object.prototype must not match. */
export function labelOf(labels: OptionalLabels, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

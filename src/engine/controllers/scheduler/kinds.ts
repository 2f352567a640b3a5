/** The kinds that the scheduler reads, with only the fields that it uses. */
import type { NodeSelector } from '#engine/controllers/placement/node-selector.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';

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

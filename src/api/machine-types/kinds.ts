/** The fields of Kubernetes' Job that a transition uses. */
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface TransitionJob extends KubeObject {
  spec?: {
    suspend?: boolean;
    backoffLimit?: number;
    template?: { metadata?: KubeObject['metadata']; spec?: Record<string, unknown> };
    [field: string]: unknown;
  };
  status?: {
    active?: number;
    succeeded?: number;
    failed?: number;
    startTime?: string;
    completionTime?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

export const TRANSITION_JOBS: ResourceType<TransitionJob> = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
};

/** The Job that owns a plan. */
export interface JobReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

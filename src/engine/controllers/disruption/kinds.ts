/** PodDisruptionBudgets with the fields that their controller uses. */
import type { Condition } from '#kube/conditions.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface BudgetStatus {
  observedGeneration?: number;
  disruptionsAllowed?: number;
  currentHealthy?: number;
  desiredHealthy?: number;
  expectedPods?: number;
  /** Pods whose eviction was allowed and that still exist, with the time of the eviction. */
  disruptedPods?: Record<string, string>;
  conditions?: Condition[];
}

export interface PodDisruptionBudget extends KubeObject {
  spec?: { selector?: LabelSelector; minAvailable?: number | string; maxUnavailable?: number | string };
  status?: BudgetStatus;
}

export const POD_DISRUPTION_BUDGETS: ResourceType<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
};

/** Computes how many pods a budget expects and how many must be healthy, as Kubernetes does. Pure. */
import type { PodDisruptionBudget } from '#engine/controllers/disruption/kinds.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { controllerOf, type Stored } from '#kube/meta.ts';

/** The scale of a pod's owner. `missing`: the owner does not exist. `none`: its kind has no scale subresource. */
export type OwnerScale =
  | { readonly replicas: number }
  | { readonly is: 'missing' }
  /** `resource` names the kind in messages. */
  | { readonly is: 'none'; readonly resource: string };

/** Scales by the uid of the owner. Empty for budgets that do not need them. */
export type Scales = ReadonlyMap<string, OwnerScale>;

type ExpectedPods =
  | { readonly expectedPods: number; readonly desiredHealthy: number; readonly unmanaged: readonly string[] }
  | { readonly failed: string };

/** Reports whether a budget depends on the scale of owners. An integer minAvailable does not. */
export function needsScale({ spec = {} }: PodDisruptionBudget): boolean {
  return spec.maxUnavailable !== undefined || typeof spec.minAvailable === 'string';
}

export function countExpectedPods(
  budget: PodDisruptionBudget,
  pods: readonly Stored<EnginePod>[],
  scales: Scales,
): ExpectedPods {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') {
    const expectedPods = minAvailable === undefined ? 0 : pods.length;
    return { expectedPods, desiredHealthy: minAvailable ?? 0, unmanaged: [] };
  }
  const wanted = maxUnavailable ?? minAvailable!;
  const summed = sumScales(pods, scales, typeof wanted === 'string');
  if ('failed' in summed) return summed;
  const { expectedPods, unmanaged } = summed;
  const scaled = typeof wanted === 'number' ? wanted : percentOf(wanted, expectedPods);
  const desiredHealthy = maxUnavailable === undefined ? scaled : Math.max(0, expectedPods - scaled);
  return { expectedPods, desiredHealthy, unmanaged };
}

/** Rounds up, for both fields. */
function percentOf(text: string, total: number): number {
  return Math.ceil((Number.parseInt(text, 10) * total) / 100);
}

type ScaleSum = { readonly expectedPods: number; readonly unmanaged: readonly string[] } | { readonly failed: string };

/**
 * Sums the scales of all owners. An owner without a scale, such as a Job, counts with its existing pods if the budget is
 * an integer. For a percentage the total is needed, and the sum fails as in Kubernetes.
 */
function sumScales(pods: readonly Stored<EnginePod>[], scales: Scales, isPercentage: boolean): ScaleSum {
  const counted = new Set<string>();
  const unmanaged: string[] = [];
  let expectedPods = 0;
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (owner === undefined) {
      unmanaged.push(pod.metadata.name);
      continue;
    }
    const scale = scales.get(owner.uid) ?? { is: 'missing' };
    if ('replicas' in scale) {
      if (!counted.has(owner.uid)) expectedPods += scale.replicas;
    } else if (scale.is === 'missing') {
      return { failed: `found no controllers for pod ${JSON.stringify(pod.metadata.name)}` };
    } else if (isPercentage) {
      return { failed: `${scale.resource} does not implement the scale subresource` };
    } else {
      expectedPods++;
    }
    counted.add(owner.uid);
  }
  return { expectedPods, unmanaged };
}

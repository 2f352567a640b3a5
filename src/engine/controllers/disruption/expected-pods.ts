/** How many pods a budget expects and how many of them must be healthy, as Kubernetes counts. Pure. */
import type { PodDisruptionBudget } from '#engine/controllers/disruption/kinds.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** What the controller of a pod wants: `missing` where it is gone, `none` where its kind has no scale. */
export type OwnerScale =
  | { readonly replicas: number }
  | { readonly is: 'missing' }
  /** `resource` is how errors name its kind. */
  | { readonly is: 'none'; readonly resource: string };

/** By uid of the owner; asked only for budgets that need it. */
export type Scales = ReadonlyMap<string, OwnerScale>;

export type ExpectedPods =
  | { readonly expectedPods: number; readonly desiredHealthy: number; readonly unmanaged: readonly string[] }
  | { readonly failed: string };

/** Integers of minAvailable say it all themselves. */
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

/** Rounded up, for both fields. */
function percentOf(text: string, total: number): number {
  return Math.ceil((Number.parseInt(text, 10) * total) / 100);
}

export function controllerOf({ metadata }: EnginePod) {
  return metadata.ownerReferences?.find(({ controller }) => controller);
}

type ScaleSum = { readonly expectedPods: number; readonly unmanaged: readonly string[] } | { readonly failed: string };

/**
 * Owners without scale (Jobs, a virtual machine) count with the pods that they have: enough for whole numbers. A share
 * needs to know of how many, and fails as in Kubernetes.
 */
function sumScales(pods: readonly Stored<EnginePod>[], scales: Scales, share: boolean): ScaleSum {
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
    } else if (share) {
      return { failed: `${scale.resource} does not implement the scale subresource` };
    } else {
      expectedPods++;
    }
    counted.add(owner.uid);
  }
  return { expectedPods, unmanaged };
}

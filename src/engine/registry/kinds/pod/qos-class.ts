/** Computes the quality of service class of a pod from its requests and limits. */
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { isRecord } from '#kube/meta.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { compareAmounts, isPositiveQuantity } from '#engine/registry/kinds/shared/quantities.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const COUNTED = ['cpu', 'memory'] as const;

/**
 * BestEffort requests nothing. Guaranteed has limits for cpu and memory in every container and equal requests. All
 * others are Burstable.
 */
export function qosClassOf(spec: EnginePodSpec): QosClass {
  const containers = [...records(spec.containers), ...records(spec.initContainers)];
  let asksForAnything = false;
  let guaranteed = containers.length > 0;
  for (const { resources } of containers) {
    for (const name of COUNTED) {
      const request = amountOf(resources?.requests, name);
      const limit = amountOf(resources?.limits, name);
      if (request !== undefined || limit !== undefined) asksForAnything = true;
      // Missing requests have already been set to the limits; a zero request counts as none.
      if (limit === undefined || request === undefined || compareAmounts(request, limit) !== 0) guaranteed = false;
    }
  }
  if (!asksForAnything) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

function amountOf(amounts: unknown, name: string): string | number | undefined {
  if (!isRecord(amounts)) return undefined;
  const amount = amounts[name];
  if (typeof amount !== 'string' && typeof amount !== 'number') return undefined;
  return isPositiveQuantity(amount) ? amount : undefined;
}

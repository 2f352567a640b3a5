/**
 * Caches why a pod fits on no node. Thousands of equal pods may wait, and the reason is the same for all of them until the
 * cluster changes. Only refusals are cached, because a pod that fits changes the cluster.
 */
import type { ClusterView } from '#engine/controllers/scheduler/filters/node-filter.ts';
import { claimsOf } from '#engine/controllers/placement/pod-claims.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type ScheduleOutcome, schedulePod } from '#engine/controllers/scheduler/schedule-pod.ts';

const MAX_ENTRIES = 1000;

export class RefusalCache {
  readonly #generationNow: () => number;
  readonly #byKey = new Map<string, ScheduleOutcome>();
  #generation = -1;

  constructor(generationNow: () => number) {
    this.#generationNow = generationNow;
  }

  readonly schedule = (facts: PodFacts, cluster: ClusterView, previousNode?: string): ScheduleOutcome => {
    const key = schedulingKey(facts);
    if (key === undefined) return schedulePod(facts, cluster, previousNode);
    const generation = this.#generationNow();
    if (generation !== this.#generation || this.#byKey.size >= MAX_ENTRIES) this.#byKey.clear();
    this.#generation = generation;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const outcome = schedulePod(facts, cluster, previousNode);
    if (outcome.node === undefined) this.#byKey.set(key, outcome);
    return outcome;
  };
}

/** Returns a key of everything that filters read of a pod, or undefined for pods with claims, which are not cached. */
function schedulingKey({ pod, namespace, labels, requests, hostPorts, tolerations }: PodFacts): string | undefined {
  if (claimsOf(pod).length > 0) return undefined;
  const { affinity, nodeSelector, topologySpreadConstraints, preemptionPolicy } = pod.spec;
  const constraints = [affinity, nodeSelector, topologySpreadConstraints, preemptionPolicy];
  return JSON.stringify([namespace, labels, [...requests], hostPorts, tolerations, constraints]);
}

/**
 * Thousands of pods alike wait for the same: why the first of them fits nowhere holds for all, as long as the cluster is
 * as it was. Only refusals are kept; whoever fits changes the cluster.
 */
import type { ClusterView } from '#engine/controllers/scheduler/filters/filter.ts';
import { claimsOf } from '#engine/controllers/scheduler/filters/volumes.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type Outcome, schedulePod } from '#engine/controllers/scheduler/schedule-pod.ts';

const MAX_SHAPES = 1000;

export class RememberedRefusals {
  readonly #generationNow: () => number;
  readonly #byShape = new Map<string, Outcome>();
  #generation = -1;

  constructor(generationNow: () => number) {
    this.#generationNow = generationNow;
  }

  readonly schedule = (facts: PodFacts, cluster: ClusterView, before?: string): Outcome => {
    const shape = shapeOf(facts);
    if (shape === undefined) return schedulePod(facts, cluster, before);
    const generation = this.#generationNow();
    if (generation !== this.#generation || this.#byShape.size >= MAX_SHAPES) this.#byShape.clear();
    this.#generation = generation;
    const known = this.#byShape.get(shape);
    if (known !== undefined) return known;
    const outcome = schedulePod(facts, cluster, before);
    if (outcome.node === undefined) this.#byShape.set(shape, outcome);
    return outcome;
  };
}

/** All that a filter looks at of a pod; undefined for pods with claims of their own. */
function shapeOf({ pod, namespace, labels, requests, hostPorts, tolerations }: PodFacts): string | undefined {
  if (claimsOf(pod).length > 0) return undefined;
  const { affinity, nodeSelector, topologySpreadConstraints, preemptionPolicy } = pod.spec;
  const wishes = [affinity, nodeSelector, topologySpreadConstraints, preemptionPolicy];
  return JSON.stringify([namespace, labels, [...requests], hostPorts, tolerations, wishes]);
}

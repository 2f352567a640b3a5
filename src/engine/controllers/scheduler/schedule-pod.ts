/** Which node a pod goes to: those that no filter refuses, the best of them by score. Pure and deterministic. */
import type { Cause, ClusterView, Filter, NodeCheck, Refusal } from '#engine/controllers/scheduler/filters/filter.ts';
import { namedNodeFilter, nodeAffinityFilter } from '#engine/controllers/scheduler/filters/node-affinity.ts';
import { taintFilter, unschedulableFilter } from '#engine/controllers/scheduler/filters/node-state.ts';
import { podAffinityFilter } from '#engine/controllers/scheduler/filters/pod-affinity.ts';
import { portFilter, resourceFilter } from '#engine/controllers/scheduler/filters/resources.ts';
import { spreadFilter } from '#engine/controllers/scheduler/filters/spread.ts';
import { volumeFilter } from '#engine/controllers/scheduler/filters/volumes.ts';
import { fitErrorMessage } from '#engine/controllers/scheduler/fit-error.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { leastUsedScore, nodeAffinityScore, taintScore } from '#engine/controllers/scheduler/scores/node-scores.ts';
import { podAffinityScore, spreadScore } from '#engine/controllers/scheduler/scores/pod-scores.ts';
import type { Score } from '#engine/controllers/scheduler/scores/score.ts';

export type Outcome =
  | { readonly node: string }
  | { readonly node?: undefined; readonly message: string; readonly causes: ReadonlySet<Cause> };

/** Kubernetes' order of plugins. */
const FILTERS: readonly (readonly [Cause, Filter])[] = [
  ['named', namedNodeFilter],
  ['unschedulable', unschedulableFilter],
  ['taints', taintFilter],
  ['node-affinity', nodeAffinityFilter],
  ['ports', portFilter],
  ['resources', resourceFilter],
  ['volumes', volumeFilter],
  ['spread', spreadFilter],
  ['pod-affinity', podAffinityFilter],
];

/** With Kubernetes' weights. */
const SCORES: readonly (readonly [weight: number, Score])[] = [
  [3, taintScore],
  [2, nodeAffinityScore],
  [1, leastUsedScore],
  [2, spreadScore],
  [2, podAffinityScore],
];

/** `before`: the node that the pod's claims were made for; it stays there if it still fits. */
export function schedulePod(facts: PodFacts, cluster: ClusterView, before?: string): Outcome {
  const { nodes } = cluster;
  const { preemptionPolicy } = facts.pod.spec;
  const unfit = { total: nodes.length, preemptionPolicy };
  const checks: [Cause, NodeCheck][] = [];
  for (const [cause, filter] of FILTERS) {
    const check = filter(facts, cluster);
    if (check === undefined) continue;
    if (typeof check === 'function') checks.push([cause, check]);
    else return { message: fitErrorMessage({ ...unfit, ...check, refusals: [] }), causes: new Set([cause]) };
  }
  const refusals: Refusal[] = [];
  const causes = new Set<Cause>(['nodes']);
  const fitting: NodeView[] = [];
  for (const view of nodes) {
    const refused = firstRefusal(checks, view);
    if (refused === undefined) {
      fitting.push(view);
      continue;
    }
    causes.add(refused.cause);
    refusals.push(refused.refusal);
  }
  if (fitting.length === 0) return { message: fitErrorMessage({ ...unfit, refusals }), causes };
  const settled = fitting.find(({ name }) => name === before);
  return { node: (settled ?? bestOf(fitting, facts, cluster)).name };
}

function firstRefusal(checks: readonly [Cause, NodeCheck][], view: NodeView) {
  for (const [cause, check] of checks) {
    const refusal = check(view);
    if (refusal !== undefined) return { cause, refusal };
  }
  return undefined;
}

/** Of equally good ones the one with the fewest pods, then the first by name. */
function bestOf(fitting: readonly NodeView[], facts: PodFacts, cluster: ClusterView): NodeView {
  const totals = totalScores(fitting, facts, cluster);
  let best = 0;
  for (let i = 1; i < fitting.length; i++) {
    const difference = totals[i]! - totals[best]! || fitting[best]!.pods.size - fitting[i]!.pods.size;
    if (difference > 0) best = i;
  }
  return fitting[best]!;
}

export function totalScores(fitting: readonly NodeView[], facts: PodFacts, cluster: ClusterView): number[] {
  const totals = fitting.map(() => 0);
  if (fitting.length === 1) return totals;
  for (const [weight, score] of SCORES) {
    score(facts, cluster, fitting)?.forEach((value, i) => {
      totals[i]! += weight * value;
    });
  }
  return totals;
}

/** Chooses the node of a pod: of the nodes that no filter refuses, the one with the best score. Pure and deterministic. */
import type {
  RefusalCause,
  ClusterView,
  NodeFilter,
  NodeCheck,
  NodeRefusal,
} from '#engine/controllers/scheduler/filters/node-filter.ts';
import { namedNodeFilter, nodeAffinityFilter } from '#engine/controllers/scheduler/filters/node-affinity.ts';
import { taintFilter, unschedulableFilter } from '#engine/controllers/scheduler/filters/node-state.ts';
import { podAffinityFilter } from '#engine/controllers/scheduler/filters/pod-affinity.ts';
import { portFilter, resourceFilter } from '#engine/controllers/scheduler/filters/resources.ts';
import { spreadFilter } from '#engine/controllers/scheduler/filters/spread.ts';
import { volumeFilter } from '#engine/controllers/scheduler/filters/volumes.ts';
import { fitErrorMessage } from '#engine/controllers/scheduler/fit-error.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { leastUsedScore, nodeAffinityScore, taintScore } from '#engine/controllers/scheduler/scores/node-scores.ts';
import { podAffinityScore, spreadScore } from '#engine/controllers/scheduler/scores/pod-scores.ts';
import type { NodeScore } from '#engine/controllers/scheduler/scores/node-score.ts';

export type ScheduleOutcome =
  | { readonly node: string }
  | { readonly node?: undefined; readonly message: string; readonly causes: ReadonlySet<RefusalCause> };

/** In the order of Kubernetes' plugins. */
const FILTERS: readonly (readonly [RefusalCause, NodeFilter])[] = [
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
const SCORES: readonly (readonly [weight: number, NodeScore])[] = [
  [3, taintScore],
  [2, nodeAffinityScore],
  [1, leastUsedScore],
  [2, spreadScore],
  [2, podAffinityScore],
];

/** `previousNode` is the node that the pod's claims were created for. It is chosen again if the pod still fits there. */
export function schedulePod(facts: PodFacts, cluster: ClusterView, previousNode?: string): ScheduleOutcome {
  const { nodes } = cluster;
  const { preemptionPolicy } = facts.pod.spec;
  const unfit = { total: nodes.length, preemptionPolicy };
  const checks: [RefusalCause, NodeCheck][] = [];
  for (const [cause, filter] of FILTERS) {
    const check = filter(facts, cluster);
    if (check === undefined) continue;
    if (typeof check === 'function') checks.push([cause, check]);
    else return { message: fitErrorMessage({ ...unfit, ...check, refusals: [] }), causes: new Set([cause]) };
  }
  const refusals: NodeRefusal[] = [];
  const causes = new Set<RefusalCause>(['nodes']);
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
  const previous = fitting.find(({ name }) => name === previousNode);
  return { node: (previous ?? pickBestNode(fitting, facts, cluster)).name };
}

function firstRefusal(checks: readonly [RefusalCause, NodeCheck][], view: NodeView) {
  for (const [cause, check] of checks) {
    const refusal = check(view);
    if (refusal !== undefined) return { cause, refusal };
  }
  return undefined;
}

/** Returns the node with the best score. Ties are decided by the number of pods, then by name. */
function pickBestNode(fitting: readonly NodeView[], facts: PodFacts, cluster: ClusterView): NodeView {
  const totals = totalScores(fitting, facts, cluster);
  let best = 0;
  for (let i = 1; i < fitting.length; i++) {
    const difference = totals[i]! - totals[best]! || fitting[best]!.pods.size - fitting[i]!.pods.size;
    if (difference > 0) best = i;
  }
  return fitting[best]!;
}

function totalScores(fitting: readonly NodeView[], facts: PodFacts, cluster: ClusterView): number[] {
  const totals = fitting.map(() => 0);
  if (fitting.length === 1) return totals;
  for (const [weight, score] of SCORES) {
    score(facts, cluster, fitting)?.forEach((value, i) => {
      totals[i]! += weight * value;
    });
  }
  return totals;
}

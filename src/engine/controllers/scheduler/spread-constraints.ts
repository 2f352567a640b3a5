/** Topology spread constraints, compiled, and how pods are spread now. Pure. */
import { requiredNodeMatch } from '#engine/controllers/scheduler/filters/node-affinity.ts';
import { type Node } from '#engine/controllers/kinds.ts';
import { labelOf } from '#engine/controllers/scheduler/kinds.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { sameAsOwn } from '#engine/controllers/scheduler/pod-terms.ts';
import { untolerated } from '#engine/controllers/scheduler/tolerations.ts';
import { labelRequirementsOf, type LabelRequirement, matchesLabels } from '#kube/label-selector.ts';

export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly minDomains: number;
  /** Empty or absent: no pod counts. */
  readonly selector: readonly LabelRequirement[] | undefined;
  /** Whether the node is one over which the pod's kind is to be spread. */
  counts(node: Node): boolean;
}

export function spreadConstraints(
  { pod, labels, tolerations }: PodFacts,
  when: 'DoNotSchedule' | 'ScheduleAnyway',
): SpreadConstraint[] {
  const wanted = (pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === when,
  );
  if (wanted.length === 0) return [];
  const affine = requiredNodeMatch(pod);
  return wanted.map((constraint) => {
    const { maxSkew, topologyKey, minDomains = 1, labelSelector, matchLabelKeys } = constraint;
    const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint;
    const selector = labelSelector && [
      ...labelRequirementsOf(labelSelector),
      ...sameAsOwn(labels, matchLabelKeys, 'in'),
    ];
    const counts = (node: Node) => {
      if (nodeAffinityPolicy === 'Honor' && affine !== undefined && !affine(node)) return false;
      if (nodeTaintsPolicy !== 'Honor') return true;
      return untolerated(node.spec?.taints, tolerations, ['NoSchedule', 'NoExecute']) === undefined;
    };
    return { maxSkew, topologyKey, minDomains, selector, counts };
  });
}

/** Pods of the namespace that the constraint is about; those under deletion are as good as gone. */
export function countSelected({ pods }: NodeView, { selector }: SpreadConstraint, namespace: string): number {
  if (selector === undefined || selector.length === 0) return 0;
  let count = 0;
  for (const other of pods.values()) {
    if (!other.leaving && other.namespace === namespace && matchesLabels(selector, other.labels)) count++;
  }
  return count;
}

export function hasAllKeys({ metadata }: Node, constraints: readonly SpreadConstraint[]): boolean {
  return constraints.every(({ topologyKey }) => labelOf(metadata.labels, topologyKey) !== undefined);
}

/** How many of them are in each domain of the constraint's topology. */
export function countByDomain(
  nodes: readonly NodeView[],
  constraint: SpreadConstraint,
  { namespace }: PodFacts,
  eligible: (node: Node) => boolean,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const view of nodes) {
    const domain = labelOf(view.node.metadata.labels, constraint.topologyKey);
    if (domain === undefined || !eligible(view.node) || !constraint.counts(view.node)) continue;
    counts.set(domain, (counts.get(domain) ?? 0) + countSelected(view, constraint, namespace));
  }
  return counts;
}

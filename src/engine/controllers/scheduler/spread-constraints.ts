/** Compiles topology spread constraints, and counts pods by topology domain. Pure. */
import { requiredNodeMatch } from '#engine/controllers/scheduler/filters/node-affinity.ts';
import { type EngineNode } from '#engine/controllers/kinds.ts';
import { labelOf } from '#engine/controllers/placement/node-selector.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { labelRequirementsFrom } from '#engine/controllers/scheduler/pod-terms.ts';
import { findUntoleratedTaint } from '#engine/controllers/placement/taints.ts';
import { labelRequirementsOf, type LabelRequirement, matchesLabels } from '#kube/selectors/label-selector.ts';

interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly minDomains: number;
  /** Empty or undefined = no pod counts. */
  readonly selector: readonly LabelRequirement[] | undefined;
  /** Reports whether the pods of a node count for this constraint. */
  includesNode(node: EngineNode): boolean;
}

export function spreadConstraints(
  { pod, labels, tolerations }: PodFacts,
  when: 'DoNotSchedule' | 'ScheduleAnyway',
): SpreadConstraint[] {
  const wanted = (pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === when,
  );
  if (wanted.length === 0) return [];
  const matchesAffinity = requiredNodeMatch(pod);
  return wanted.map((constraint) => {
    const { maxSkew, topologyKey, minDomains = 1, labelSelector, matchLabelKeys } = constraint;
    const { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = constraint;
    const selector = labelSelector && [
      ...labelRequirementsOf(labelSelector),
      ...labelRequirementsFrom(labels, matchLabelKeys, 'in'),
    ];
    const includesNode = (node: EngineNode) => {
      if (nodeAffinityPolicy === 'Honor' && matchesAffinity !== undefined && !matchesAffinity(node)) return false;
      if (nodeTaintsPolicy !== 'Honor') return true;
      return findUntoleratedTaint(node.spec?.taints, tolerations, ['NoSchedule', 'NoExecute']) === undefined;
    };
    return { maxSkew, topologyKey, minDomains, selector, includesNode };
  });
}

/** Counts the pods on a node that the constraint selects. Pods under deletion do not count. */
function countSelected({ pods }: NodeView, { selector }: SpreadConstraint, namespace: string): number {
  if (selector === undefined || selector.length === 0) return 0;
  let count = 0;
  for (const other of pods.values()) {
    if (!other.isDeleting && other.namespace === namespace && matchesLabels(selector, other.labels)) count++;
  }
  return count;
}

export function hasAllKeys({ metadata }: EngineNode, constraints: readonly SpreadConstraint[]): boolean {
  return constraints.every(({ topologyKey }) => labelOf(metadata.labels, topologyKey) !== undefined);
}

/** Counts the selected pods in each domain of the constraint's topology. */
export function countByDomain(
  nodes: readonly NodeView[],
  constraint: SpreadConstraint,
  { namespace }: PodFacts,
  eligible: (node: EngineNode) => boolean,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const view of nodes) {
    const domain = labelOf(view.node.metadata.labels, constraint.topologyKey);
    if (domain === undefined || !eligible(view.node) || !constraint.includesNode(view.node)) continue;
    counts.set(domain, (counts.get(domain) ?? 0) + countSelected(view, constraint, namespace));
  }
  return counts;
}

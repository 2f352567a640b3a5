/** Scores by other pods: preferred affinity and anti-affinity in both directions, and spreading by constraint or owner. */
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { type OptionalLabels, labelOf } from '#engine/controllers/placement/node-selector.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type PodTerm, termSelects } from '#engine/controllers/scheduler/pod-terms.ts';
import { MAX_SCORE, invertScores, type NodeScore } from '#engine/controllers/scheduler/scores/node-score.ts';
import { countByDomain, hasAllKeys, spreadConstraints } from '#engine/controllers/scheduler/spread-constraints.ts';

/** The weight of an existing pod's required affinity that selects the new pod, as in Kubernetes. */
const REQUIRED_WEIGHT = 1;

export const podAffinityScore: NodeScore = (facts, { nodes, namespaceLabels }, fitting) => {
  const { pod, preferredAffinity, preferredAntiAffinity } = facts;
  const weights = new Map<string, Map<string, number>>();
  const addWeight = (term: PodTerm, weight: number, selected: EnginePod, labels: OptionalLabels) => {
    const domain = labelOf(labels, term.topologyKey);
    if (domain === undefined || !termSelects(term, selected, namespaceLabels)) return;
    const byDomain = weights.get(term.topologyKey) ?? new Map<string, number>();
    weights.set(term.topologyKey, byDomain.set(domain, (byDomain.get(domain) ?? 0) + weight));
  };
  const hasPreferences = preferredAffinity.length + preferredAntiAffinity.length > 0;
  for (const view of nodes) {
    const { labels } = view.node.metadata;
    for (const other of hasPreferences ? view.pods.values() : view.affinityPods) {
      for (const term of preferredAffinity) addWeight(term, term.weight, other.pod, labels);
      for (const term of preferredAntiAffinity) addWeight(term, -term.weight, other.pod, labels);
      for (const term of other.requiredAffinity) addWeight(term, REQUIRED_WEIGHT, pod, labels);
      for (const term of other.preferredAffinity) addWeight(term, term.weight, pod, labels);
      for (const term of other.preferredAntiAffinity) addWeight(term, -term.weight, pod, labels);
    }
  }
  if (weights.size === 0) return undefined;
  const raw = fitting.map(({ node }) => {
    let sum = 0;
    for (const [key, byDomain] of weights) sum += byDomain.get(labelOf(node.metadata.labels, key) ?? '') ?? 0;
    return sum;
  });
  const least = Math.min(...raw);
  const range = Math.max(...raw) - least;
  return range === 0 ? undefined : raw.map((value) => Math.floor((MAX_SCORE * (value - least)) / range));
};

/** Spreads by the constraints with whenUnsatisfiable: ScheduleAnyway, or by owner if there are none. */
export const spreadScore: NodeScore = (facts, { nodes }, fitting) => {
  const constraints = spreadConstraints(facts, 'ScheduleAnyway');
  if (constraints.length === 0) return scoreByOwner(facts, fitting);
  const eligible = fitting.filter(({ node }) => hasAllKeys(node, constraints));
  if (eligible.length === 0) return undefined;
  const raw = new Map(eligible.map(({ name }) => [name, 0]));
  for (const constraint of constraints) {
    const { topologyKey, maxSkew } = constraint;
    const counts = countByDomain(nodes, constraint, facts, (node) => hasAllKeys(node, constraints));
    const domains = new Set(eligible.map(({ node }) => labelOf(node.metadata.labels, topologyKey)));
    const weight = Math.log(domains.size + 2);
    for (const { name, node } of eligible) {
      const count = counts.get(labelOf(node.metadata.labels, topologyKey) ?? '') ?? 0;
      raw.set(name, (raw.get(name) ?? 0) + count * weight + maxSkew - 1);
    }
  }
  const values = [...raw.values()].map(Math.round);
  const [most, least] = [Math.max(...values), Math.min(...values)];
  return fitting.map(({ name }) => {
    const value = raw.get(name);
    if (value === undefined) return 0;
    return most === 0 ? MAX_SCORE : Math.floor((MAX_SCORE * (most + least - Math.round(value))) / most);
  });
};

function scoreByOwner({ owner }: PodFacts, fitting: readonly NodeView[]): number[] | undefined {
  if (owner === undefined) return undefined;
  return invertScores(fitting.map(({ owners }) => owners.get(owner) ?? 0));
}

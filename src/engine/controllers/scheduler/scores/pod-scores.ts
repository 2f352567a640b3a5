/** Where other pods are: preferred (anti-)affinity both ways, spreading by constraint and by owner. */
import { type Pod } from '#engine/controllers/kinds.ts';
import { type Labels, labelOf } from '#engine/controllers/scheduler/kinds.ts';
import type { NodeView } from '#engine/controllers/scheduler/node-room.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type PodTerm, termSelects } from '#engine/controllers/scheduler/pod-terms.ts';
import { BEST, reversed, type Score } from '#engine/controllers/scheduler/scores/score.ts';
import { countByDomain, hasAllKeys, spreadConstraints } from '#engine/controllers/scheduler/spread-constraints.ts';

/** That a pod requires company counts a little for those that it requires, too. */
const REQUIRED_WEIGHT = 1;

export const podAffinityScore: Score = (facts, { nodes, namespaceLabels }, fitting) => {
  const { pod, ratherNear, ratherApart } = facts;
  const weights = new Map<string, Map<string, number>>();
  const weigh = (term: PodTerm, weight: number, selected: Pod, labels: Labels) => {
    const domain = labelOf(labels, term.topologyKey);
    if (domain === undefined || !termSelects(term, selected, namespaceLabels)) return;
    const byDomain = weights.get(term.topologyKey) ?? new Map<string, number>();
    weights.set(term.topologyKey, byDomain.set(domain, (byDomain.get(domain) ?? 0) + weight));
  };
  const particular = ratherNear.length + ratherApart.length > 0;
  for (const view of nodes) {
    const { labels } = view.node.metadata;
    for (const other of particular ? view.pods.values() : view.choosy) {
      for (const term of ratherNear) weigh(term, term.weight, other.pod, labels);
      for (const term of ratherApart) weigh(term, -term.weight, other.pod, labels);
      for (const term of other.near) weigh(term, REQUIRED_WEIGHT, pod, labels);
      for (const term of other.ratherNear) weigh(term, term.weight, pod, labels);
      for (const term of other.ratherApart) weigh(term, -term.weight, pod, labels);
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
  return range === 0 ? undefined : raw.map((value) => Math.floor((BEST * (value - least)) / range));
};

/** Topology spread constraints that should hold (whenUnsatisfiable: ScheduleAnyway), or else the pods of one owner. */
export const spreadScore: Score = (facts, { nodes }, fitting) => {
  const constraints = spreadConstraints(facts, 'ScheduleAnyway');
  if (constraints.length === 0) return byOwner(facts, fitting);
  const taking = fitting.filter(({ node }) => hasAllKeys(node, constraints));
  if (taking.length === 0) return undefined;
  const raw = new Map(taking.map(({ name }) => [name, 0]));
  for (const constraint of constraints) {
    const { topologyKey, maxSkew } = constraint;
    const counts = countByDomain(nodes, constraint, facts, (node) => hasAllKeys(node, constraints));
    const domains = new Set(taking.map(({ node }) => labelOf(node.metadata.labels, topologyKey)));
    const weight = Math.log(domains.size + 2);
    for (const { name, node } of taking) {
      const count = counts.get(labelOf(node.metadata.labels, topologyKey) ?? '') ?? 0;
      raw.set(name, (raw.get(name) ?? 0) + count * weight + maxSkew - 1);
    }
  }
  const values = [...raw.values()].map(Math.round);
  const [most, least] = [Math.max(...values), Math.min(...values)];
  return fitting.map(({ name }) => {
    const value = raw.get(name);
    if (value === undefined) return 0;
    return most === 0 ? BEST : Math.floor((BEST * (most + least - Math.round(value))) / most);
  });
};

function byOwner({ owner }: PodFacts, fitting: readonly NodeView[]): number[] | undefined {
  if (owner === undefined) return undefined;
  return reversed(fitting.map(({ owners }) => owners.get(owner) ?? 0));
}

/** Required affinity and anti-affinity between pods: of the new pod, and of those that are there already. */
import {
  type ClusterView,
  type Filter,
  resolvable,
  unresolvable,
} from '#engine/controllers/scheduler/filters/filter.ts';
import { type Labels, labelOf } from '#engine/controllers/scheduler/kinds.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type PodTerm, termSelects } from '#engine/controllers/scheduler/pod-terms.ts';

const NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules");
const NOT_APART = resolvable("node(s) didn't match pod anti-affinity rules");
const KEPT_AWAY = resolvable("node(s) didn't satisfy existing pods anti-affinity rules");

export const podAffinityFilter: Filter = (facts, cluster) => {
  const { near, apart } = facts;
  const guarded = guardedDomains(facts, cluster);
  if (near.length + apart.length + guarded.size === 0) return undefined;
  const { company, rivals } = othersOf(facts, cluster);
  // The first of a series that wants to be together has nobody to join yet.
  const isFirst = company.size === 0 && near.every((term) => termSelects(term, facts.pod, cluster.namespaceLabels));
  return ({ node }) => {
    const { labels } = node.metadata;
    if (!near.every((term) => labelOf(labels, term.topologyKey) !== undefined)) return NOT_NEAR;
    if (!isFirst && !near.every((term) => company.has(domainOf(term, labels)))) return NOT_NEAR;
    if (apart.some((term) => rivals.has(domainOf(term, labels)))) return NOT_APART;
    if (guarded.size > 0 && Object.entries(labels ?? {}).some(([key, value]) => guarded.has(pair(key, value)))) {
      return KEPT_AWAY;
    }
    return undefined;
  };
};

/** Domains in which pods are that do not want this one near. */
function guardedDomains({ pod }: PodFacts, { nodes, namespaceLabels }: ClusterView): Set<string> {
  const domains = new Set<string>();
  for (const { node, guarded } of nodes) {
    for (const { apart } of guarded) {
      for (const term of apart) {
        if (termSelects(term, pod, namespaceLabels)) domains.add(domainOf(term, node.metadata.labels));
      }
    }
  }
  domains.delete(NO_DOMAIN);
  return domains;
}

/** Domains with pods that this one wants near (selected by all terms at once), and with such that it does not. */
function othersOf({ near, apart }: PodFacts, { nodes, namespaceLabels }: ClusterView) {
  const company = new Set<string>();
  const rivals = new Set<string>();
  if (near.length + apart.length === 0) return { company, rivals };
  for (const { node, pods } of nodes) {
    const { labels } = node.metadata;
    for (const { pod } of pods.values()) {
      if (near.length > 0 && near.every((term) => termSelects(term, pod, namespaceLabels))) {
        for (const term of near) company.add(domainOf(term, labels));
      }
      for (const term of apart) if (termSelects(term, pod, namespaceLabels)) rivals.add(domainOf(term, labels));
    }
  }
  company.delete(NO_DOMAIN);
  rivals.delete(NO_DOMAIN);
  return { company, rivals };
}

const NO_DOMAIN = '';

function domainOf({ topologyKey }: PodTerm, labels: Labels): string {
  const value = labelOf(labels, topologyKey);
  return value === undefined ? NO_DOMAIN : pair(topologyKey, value);
}

/** Neither keys nor values hold it. */
function pair(key: string, value: string): string {
  return `${key}=${value}`;
}

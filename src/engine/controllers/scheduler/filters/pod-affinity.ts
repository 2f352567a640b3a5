/** Required affinity and anti-affinity between pods: that of the new pod, and that of pods that already run. */
import {
  type ClusterView,
  type NodeFilter,
  resolvableRefusal,
  unresolvableRefusal,
} from '#engine/controllers/scheduler/filters/node-filter.ts';
import { type OptionalLabels, labelOf } from '#engine/controllers/placement/node-selector.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { type PodTerm, termSelects } from '#engine/controllers/scheduler/pod-terms.ts';

const AFFINITY_REFUSAL = unresolvableRefusal("node(s) didn't match pod affinity rules");
const ANTI_AFFINITY_REFUSAL = resolvableRefusal("node(s) didn't match pod anti-affinity rules");
const EXISTING_ANTI_AFFINITY_REFUSAL = resolvableRefusal("node(s) didn't satisfy existing pods anti-affinity rules");

export const podAffinityFilter: NodeFilter = (facts, cluster) => {
  const { requiredAffinity, requiredAntiAffinity } = facts;
  const repelling = findRepellingDomains(facts, cluster);
  if (requiredAffinity.length + requiredAntiAffinity.length + repelling.size === 0) return undefined;
  const { affine, antiAffine } = findRelatedDomains(facts, cluster);
  // The first pod of a group with affinity to itself has no pod to join yet.
  const isFirst =
    affine.size === 0 && requiredAffinity.every((term) => termSelects(term, facts.pod, cluster.namespaceLabels));
  return ({ node }) => {
    const { labels } = node.metadata;
    if (!requiredAffinity.every((term) => labelOf(labels, term.topologyKey) !== undefined)) return AFFINITY_REFUSAL;
    if (!isFirst && !requiredAffinity.every((term) => affine.has(domainOf(term, labels)))) return AFFINITY_REFUSAL;
    if (requiredAntiAffinity.some((term) => antiAffine.has(domainOf(term, labels)))) return ANTI_AFFINITY_REFUSAL;
    if (
      repelling.size > 0 &&
      Object.entries(labels ?? {}).some(([key, value]) => repelling.has(domainKey(key, value)))
    ) {
      return EXISTING_ANTI_AFFINITY_REFUSAL;
    }
    return undefined;
  };
};

/** Returns the domains with pods whose anti-affinity excludes this pod. */
function findRepellingDomains({ pod }: PodFacts, { nodes, namespaceLabels }: ClusterView): Set<string> {
  const domains = new Set<string>();
  for (const { node, antiAffinityPods } of nodes) {
    for (const { requiredAntiAffinity } of antiAffinityPods) {
      for (const term of requiredAntiAffinity) {
        if (termSelects(term, pod, namespaceLabels)) domains.add(domainOf(term, node.metadata.labels));
      }
    }
  }
  domains.delete(NO_DOMAIN);
  return domains;
}

/**
 * Returns the domains with pods that this pod's affinity selects (with all terms at once), and those with pods that its
 * anti-affinity selects.
 */
function findRelatedDomains(
  { requiredAffinity, requiredAntiAffinity }: PodFacts,
  { nodes, namespaceLabels }: ClusterView,
) {
  const affine = new Set<string>();
  const antiAffine = new Set<string>();
  if (requiredAffinity.length + requiredAntiAffinity.length === 0) return { affine, antiAffine };
  for (const { node, pods } of nodes) {
    const { labels } = node.metadata;
    for (const { pod } of pods.values()) {
      if (requiredAffinity.length > 0 && requiredAffinity.every((term) => termSelects(term, pod, namespaceLabels))) {
        for (const term of requiredAffinity) affine.add(domainOf(term, labels));
      }
      for (const term of requiredAntiAffinity)
        if (termSelects(term, pod, namespaceLabels)) antiAffine.add(domainOf(term, labels));
    }
  }
  affine.delete(NO_DOMAIN);
  antiAffine.delete(NO_DOMAIN);
  return { affine, antiAffine };
}

const NO_DOMAIN = '';

function domainOf({ topologyKey }: PodTerm, labels: OptionalLabels): string {
  const value = labelOf(labels, topologyKey);
  return value === undefined ? NO_DOMAIN : domainKey(topologyKey, value);
}

/** Unambiguous, because neither keys nor values contain `=`. */
function domainKey(key: string, value: string): string {
  return `${key}=${value}`;
}

/** Pod affinity terms, compiled: which other pods a pod wants near or far. Pure. */
import { type Pod } from '#engine/controllers/kinds.ts';
import { labelOf, type Labels } from '#engine/controllers/scheduler/kinds.ts';
import type { podAffinity, podAffinityTerm } from '#engine/registry/kinds/shared/scheduling.ts';
import { labelRequirementsOf, type LabelRequirement, matchesLabels } from '#kube/label-selector.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export interface PodTerm {
  readonly topologyKey: string;
  /** Absent: it selects no pod. */
  readonly selector: readonly LabelRequirement[] | undefined;
  readonly namespaces: ReadonlySet<string>;
  readonly namespaceSelector: readonly LabelRequirement[] | undefined;
}

export interface WeightedPodTerm extends PodTerm {
  readonly weight: number;
}

/** What the API says of a namespace's labels. */
export type NamespaceLabels = (namespace: string) => Labels;

type PodAffinity = Infer<typeof podAffinity>;

export function requiredTerms(pod: Pod, affinity: PodAffinity | undefined): PodTerm[] {
  return (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => compilePodTerm(pod, term));
}

export function preferredTerms(pod: Pod, affinity: PodAffinity | undefined): WeightedPodTerm[] {
  return (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ weight, podAffinityTerm: term }) => ({
    ...compilePodTerm(pod, term),
    weight,
  }));
}

function compilePodTerm({ metadata }: Pod, term: Infer<typeof podAffinityTerm>): PodTerm {
  const { topologyKey, labelSelector, namespaceSelector, namespaces = [] } = term;
  const own = namespaces.length === 0 && namespaceSelector === undefined;
  return {
    topologyKey,
    selector: labelSelector && [
      ...labelRequirementsOf(labelSelector),
      ...sameAsOwn(metadata.labels, term.matchLabelKeys, 'in'),
      ...sameAsOwn(metadata.labels, term.mismatchLabelKeys, 'notin'),
    ],
    namespaces: new Set(own ? [metadata.namespace ?? ''] : namespaces),
    namespaceSelector: namespaceSelector && labelRequirementsOf(namespaceSelector),
  };
}

/** Labels that must be, or must not be, as those of the pod that asks. */
export function sameAsOwn(labels: Labels, keys: readonly string[] = [], operator: 'in' | 'notin'): LabelRequirement[] {
  return keys.flatMap((key) => {
    const value = labelOf(labels, key);
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}

export function termSelects(term: PodTerm, { metadata }: Pod, namespaceLabels: NamespaceLabels): boolean {
  const { selector, namespaces, namespaceSelector } = term;
  if (selector === undefined || !matchesLabels(selector, metadata.labels)) return false;
  const namespace = metadata.namespace ?? '';
  if (namespaces.has(namespace)) return true;
  return namespaceSelector !== undefined && matchesLabels(namespaceSelector, namespaceLabels(namespace));
}

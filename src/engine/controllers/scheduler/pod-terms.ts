/** Compiles pod affinity terms, which select the other pods that affinity and anti-affinity refer to. Pure. */
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { labelOf, type OptionalLabels } from '#engine/controllers/placement/node-selector.ts';
import type { podAffinity, podAffinityTerm } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import { labelRequirementsOf, type LabelRequirement, matchesLabels } from '#kube/selectors/label-selector.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export interface PodTerm {
  readonly topologyKey: string;
  /** undefined = selects no pod. */
  readonly selector: readonly LabelRequirement[] | undefined;
  readonly namespaces: ReadonlySet<string>;
  readonly namespaceSelector: readonly LabelRequirement[] | undefined;
}

export interface WeightedPodTerm extends PodTerm {
  readonly weight: number;
}

/** Returns the labels of a namespace. */
type NamespaceLabels = (namespace: string) => OptionalLabels;

type PodAffinity = Infer<typeof podAffinity>;

export function requiredTerms(pod: EnginePod, affinity: PodAffinity | undefined): PodTerm[] {
  return (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => compilePodTerm(pod, term));
}

export function preferredTerms(pod: EnginePod, affinity: PodAffinity | undefined): WeightedPodTerm[] {
  return (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ weight, podAffinityTerm: term }) => ({
    ...compilePodTerm(pod, term),
    weight,
  }));
}

function compilePodTerm({ metadata }: EnginePod, term: Infer<typeof podAffinityTerm>): PodTerm {
  const { topologyKey, labelSelector, namespaceSelector, namespaces = [] } = term;
  const ownNamespaceOnly = namespaces.length === 0 && namespaceSelector === undefined;
  return {
    topologyKey,
    selector: labelSelector && [
      ...labelRequirementsOf(labelSelector),
      ...labelRequirementsFrom(metadata.labels, term.matchLabelKeys, 'in'),
      ...labelRequirementsFrom(metadata.labels, term.mismatchLabelKeys, 'notin'),
    ],
    namespaces: new Set(ownNamespaceOnly ? [metadata.namespace ?? ''] : namespaces),
    namespaceSelector: namespaceSelector && labelRequirementsOf(namespaceSelector),
  };
}

/** Returns requirements that these labels of the other pod equal, or differ from, the given ones. */
export function labelRequirementsFrom(
  labels: OptionalLabels,
  keys: readonly string[] = [],
  operator: 'in' | 'notin',
): LabelRequirement[] {
  return keys.flatMap((key) => {
    const value = labelOf(labels, key);
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}

export function termSelects(term: PodTerm, { metadata }: EnginePod, namespaceLabels: NamespaceLabels): boolean {
  const { selector, namespaces, namespaceSelector } = term;
  if (selector === undefined || !matchesLabels(selector, metadata.labels)) return false;
  const namespace = metadata.namespace ?? '';
  if (namespaces.has(namespace)) return true;
  return namespaceSelector !== undefined && matchesLabels(namespaceSelector, namespaceLabels(namespace));
}

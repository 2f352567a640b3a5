/** The scopes of quotas: which objects a quota with scopes counts. Pure. */
import { amountsOf } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import type { ScopeRequirement } from '#engine/registry/kinds/core/quota-scope-rules.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';

/** Answers about one object, by scope: whether it is in the scope, or the names that it has there. */
export type ScopeFacts = Readonly<Record<string, boolean | readonly string[]>>;

export function podScopeFacts(spec: EnginePodSpec): ScopeFacts {
  const isTerminating = (spec.activeDeadlineSeconds ?? -1) >= 0;
  const isBestEffort = !asksForCompute(spec);
  return {
    Terminating: isTerminating,
    NotTerminating: !isTerminating,
    BestEffort: isBestEffort,
    NotBestEffort: !isBestEffort,
    PriorityClass: spec.priorityClassName ? [spec.priorityClassName] : [],
    CrossNamespacePodAffinity: namesOtherNamespaces(spec),
  };
}

export function claimScopeFacts(spec: Record<string, unknown>, status: Record<string, unknown>): ScopeFacts {
  const change = isRecord(status['modifyVolumeStatus']) ? status['modifyVolumeStatus'] : {};
  const names = [
    spec['volumeAttributesClassName'],
    status['currentVolumeAttributesClassName'],
    change['targetVolumeAttributesClassName'],
  ];
  return { VolumeAttributesClass: names.filter((name) => typeof name === 'string' && name !== '') as string[] };
}

/** Reports whether an object is in all scopes. An object without facts is in none. */
export function matchesScopes(facts: ScopeFacts | undefined, requirements: readonly ScopeRequirement[]): boolean {
  return requirements.every((requirement) => facts !== undefined && matchesScope(facts, requirement));
}

function matchesScope(facts: ScopeFacts, { scopeName, operator, values = [] }: ScopeRequirement): boolean {
  const fact = facts[scopeName];
  if (fact === undefined || typeof fact === 'boolean') return fact ?? false;
  switch (operator) {
    case 'Exists':
      return fact.length > 0;
    case 'DoesNotExist':
      return fact.length === 0;
    case 'In':
      return fact.some((name) => values.includes(name));
    case 'NotIn':
      // As in Kubernetes: a claim between two classes is in the scope if one of them is.
      return fact.length === 0 || fact.some((name) => !values.includes(name));
    default:
      return false;
  }
}

function asksForCompute({ containers, initContainers = [], resources }: EnginePodSpec): boolean {
  return [...(containers ?? []), ...initContainers, { resources }].some((container) =>
    (['requests', 'limits'] as const).some((list) => {
      const amounts = amountsOf(container.resources?.[list]);
      return ['cpu', 'memory'].some((name) => (amounts.get(name)?.nanos ?? 0n) > 0n);
    }),
  );
}

type Terms = readonly Record<string, unknown>[] | undefined;

function namesOtherNamespaces({ affinity }: EnginePodSpec): boolean {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].some((rules) => {
    if (!isRecord(rules)) return false;
    const required = records(rules['requiredDuringSchedulingIgnoredDuringExecution'] as Terms);
    const preferred = records(rules['preferredDuringSchedulingIgnoredDuringExecution'] as Terms);
    return [...required, ...preferred.map((term) => term['podAffinityTerm'])].some(namesNamespaces);
  });
}

function namesNamespaces(term: unknown): boolean {
  if (!isRecord(term)) return false;
  const { namespaces } = term;
  return (Array.isArray(namespaces) && namespaces.length > 0) || isRecord(term['namespaceSelector']);
}

/**
 * Compiles the match rules of webhooks and policies, in two steps:
 *
 *   resource, subresource, operation ──narrow──► never, or a Select ──► labels and names of the request
 *
 * match-index.ts caches the first step, so that a request that matches nothing costs almost nothing.
 */
import type { AdmissionAttributes, AdmissionOperation } from '#engine/admission/admission.ts';
import { NAMESPACE_COLLECTION } from '#engine/admission/namespace-lifecycle.ts';
import { ruleMatches, type RuleLike, type RuleTarget } from '#engine/admission/matching/rule-patterns.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { notFound } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import {
  labelRequirementsOf,
  matchesLabels,
  type LabelRequirement,
  type LabelSelector,
} from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export type ObjectLabels = Readonly<Record<string, string>>;

interface NamedRuleLike extends RuleLike {
  /** Absent or empty = every name. */
  readonly resourceNames?: readonly string[];
}

/** matchConstraints and matchResources of policies; webhooks are read in this form, too. */
export interface MatchResourcesLike {
  /** Absent or empty = everything. */
  readonly resourceRules?: readonly NamedRuleLike[];
  readonly excludeResourceRules?: readonly NamedRuleLike[];
  /** Equivalent unless it is Exact. */
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
}

export interface MatchParts {
  /** Returns undefined if the namespace does not exist. */
  namespaceLabels(name: string): ObjectLabels | undefined;
  /** Returns the other served versions of the same collection. */
  equivalents(resource: Resource): readonly Resource[];
}

/** Returns the version in which the request matches: its own, or an equivalent one. Undefined = no match. */
export type Select = (attributes: AdmissionAttributes) => Resource | undefined;

export interface CompiledMatch {
  /**
   * Returns undefined if no such request can match, regardless of its labels. Valid for one generation of the registry.
   */
  narrow(resource: Resource, subresource: string, operation: AdmissionOperation): Select | undefined;
}

/** Throws for invalid selectors, which validation rejects. */
export function compileMatchResources(match: MatchResourcesLike, parts: MatchParts): CompiledMatch {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = match;
  const ofNamespace = requirementsOf(match.namespaceSelector);
  const ofObject = requirementsOf(match.objectSelector);
  return {
    narrow(resource, subresource, operation) {
      const target = { resource, subresource, operation };
      const others = matchPolicy === 'Exact' ? [] : parts.equivalents(resource);
      const excluded = findHits(excludeResourceRules, target, others);
      if (excluded.some(({ names }) => names === undefined)) return undefined;
      const included =
        resourceRules.length === 0
          ? [{ version: resource, names: undefined }]
          : findHits(resourceRules, target, others);
      if (included.length === 0) return undefined;
      return (attributes) => {
        if (!namespaceMatches(ofNamespace, attributes, parts)) return undefined;
        if (!objectMatches(ofObject, attributes)) return undefined;
        if (excluded.some(({ names }) => names?.has(attributes.name))) return undefined;
        return included.find(({ names }) => names === undefined || names.has(attributes.name))?.version;
      };
    },
  };
}

interface Hit {
  readonly version: Resource;
  /** Undefined = every name. */
  readonly names: ReadonlySet<string> | undefined;
}

/** Checks the request's own version in all rules first, then the equivalent versions rule by rule. */
function findHits(rules: readonly NamedRuleLike[], target: RuleTarget, others: readonly Resource[]): Hit[] {
  const own = rules.filter((rule) => ruleMatches(rule, target)).map((rule) => toHit(rule, target.resource));
  const equivalent = rules.flatMap((rule) =>
    others.filter((resource) => ruleMatches(rule, { ...target, resource })).map((resource) => toHit(rule, resource)),
  );
  return [...own, ...equivalent];
}

function toHit({ resourceNames = [] }: NamedRuleLike, version: Resource): Hit {
  return { version, names: resourceNames.length === 0 ? undefined : new Set(resourceNames) };
}

function requirementsOf(selector: LabelSelector | undefined): readonly LabelRequirement[] {
  return selector === undefined ? [] : labelRequirementsOf(selector);
}

/** Returns the namespace of a request; for a Namespace that is itself, as in Kubernetes. */
export function namespaceOf({ resource, namespace, name }: AdmissionAttributes): string {
  return resource.collection === NAMESPACE_COLLECTION && namespace === '' ? name : namespace;
}

function namespaceMatches(
  requirements: readonly LabelRequirement[],
  attributes: AdmissionAttributes,
  { namespaceLabels }: MatchParts,
): boolean {
  if (requirements.length === 0) return true;
  const { resource, subresource, operation, object } = attributes;
  if (resource.collection === NAMESPACE_COLLECTION) {
    // The new labels count; a delete or a status update has none.
    const hasNewLabels = subresource === '' && (operation === 'CREATE' || operation === 'UPDATE');
    if (hasNewLabels) return matchesLabels(requirements, object?.metadata.labels);
  }
  const name = namespaceOf(attributes);
  if (name === '') return true;
  const labels = namespaceLabels(name);
  if (labels === undefined) throw notFound(NAMESPACES, name);
  return matchesLabels(requirements, labels);
}

function objectMatches(requirements: readonly LabelRequirement[], attributes: AdmissionAttributes): boolean {
  if (requirements.length === 0) return true;
  const fits = (object: KubeObject | undefined) =>
    object !== undefined && matchesLabels(requirements, object.metadata?.labels);
  return fits(attributes.object) || fits(attributes.oldObject);
}

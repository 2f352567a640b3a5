/**
 * Which requests a webhook or policy wants to see, compiled in two steps:
 *
 *   resource, subresource, operation ──narrow──► never, or a Select ──► labels and names of the request at hand
 *
 * The first step is cached by match-index.ts, so that a request that nobody asks for costs next to nothing.
 */
import type { AdmissionAttributes, Operation } from '#engine/admission/admission.ts';
import { NAMESPACE_COLLECTION, NAMESPACES } from '#engine/admission/namespace-lifecycle.ts';
import { ruleMatches, type RuleLike, type RuleTarget } from '#engine/admission/matching/rule-patterns.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { notFound } from '#kube/api-error.ts';
import { labelRequirementsOf, matchesLabels, type LabelRequirement, type LabelSelector } from '#kube/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export type Labels = Readonly<Record<string, string>>;

export interface NamedRuleLike extends RuleLike {
  /** Absent or empty = every name. */
  readonly resourceNames?: readonly string[];
}

/** matchConstraints and matchResources of policies; webhooks are read as such, too. */
export interface MatchResourcesLike {
  /** Absent or empty = everything. */
  readonly resourceRules?: readonly NamedRuleLike[];
  readonly excludeResourceRules?: readonly NamedRuleLike[];
  /** Equivalent unless it says Exact. */
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
}

export interface MatchParts {
  /** undefined = there is no such namespace. */
  namespaceLabels(name: string): Labels | undefined;
  /** Other served versions of the same collection. */
  equivalents(resource: Resource): readonly Resource[];
}

/** The version of the resource in which the rule speaks: the request's own, or an equivalent one. undefined = no match. */
export type Select = (attributes: AdmissionAttributes) => Resource | undefined;

export interface CompiledMatch {
  /** undefined = no request of this sort matches, whatever its labels. Right for one generation of the registry. */
  narrow(resource: Resource, subresource: string, operation: Operation): Select | undefined;
}

/** Throws for selectors that cannot be: validation has refused them. */
export function compileMatchResources(match: MatchResourcesLike, parts: MatchParts): CompiledMatch {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = match;
  const ofNamespace = requirementsOf(match.namespaceSelector);
  const ofObject = requirementsOf(match.objectSelector);
  return {
    narrow(resource, subresource, operation) {
      const target = { resource, subresource, operation };
      const others = matchPolicy === 'Exact' ? [] : parts.equivalents(resource);
      const excluded = namedHits(excludeResourceRules, target, others);
      if (excluded.some(({ names }) => names === undefined)) return undefined;
      const included =
        resourceRules.length === 0
          ? [{ version: resource, names: undefined }]
          : namedHits(resourceRules, target, others);
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

/** For who asks seldom; who is asked for each request keeps a MatchIndex. */
export function compileMatch(
  match: MatchResourcesLike,
  parts: MatchParts,
): (attributes: AdmissionAttributes) => boolean {
  const compiled = compileMatchResources(match, parts);
  return (attributes) => {
    const { resource, subresource, operation } = attributes;
    return compiled.narrow(resource, subresource, operation)?.(attributes) !== undefined;
  };
}

interface Hit {
  readonly version: Resource;
  /** undefined = every name. */
  readonly names: ReadonlySet<string> | undefined;
}

/** The request's own version first, in all rules; then rule by rule the equivalent ones. */
function namedHits(rules: readonly NamedRuleLike[], target: RuleTarget, others: readonly Resource[]): Hit[] {
  const own = rules.filter((rule) => ruleMatches(rule, target)).map((rule) => hit(rule, target.resource));
  const equivalent = rules.flatMap((rule) =>
    others.filter((resource) => ruleMatches(rule, { ...target, resource })).map((resource) => hit(rule, resource)),
  );
  return [...own, ...equivalent];
}

function hit({ resourceNames = [] }: NamedRuleLike, version: Resource): Hit {
  return { version, names: resourceNames.length === 0 ? undefined : new Set(resourceNames) };
}

function requirementsOf(selector: LabelSelector | undefined): readonly LabelRequirement[] {
  return selector === undefined ? [] : labelRequirementsOf(selector);
}

/** The namespace that a request is about; for a Namespace that is itself, as Kubernetes has it. */
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
    // The labels that it is about to have count; a delete or a status does not bring any.
    const brings = subresource === '' && (operation === 'CREATE' || operation === 'UPDATE');
    if (brings) return matchesLabels(requirements, object?.metadata.labels);
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

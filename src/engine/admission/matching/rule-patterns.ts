/** Matches the resources, subresources and operations of webhook and policy rules. Pure. */
import type { AdmissionOperation } from '#engine/admission/admission.ts';
import type { Resource } from '#engine/registry/resource.ts';

export interface RuleLike {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  /** Patterns such as `pods`, `pods/status`, `pods/*` and `*`. */
  readonly resources?: readonly string[];
  readonly scope?: string;
}

/** The parts of a request that a rule can match. */
export interface RuleTarget {
  readonly resource: Resource;
  readonly subresource: string;
  readonly operation: AdmissionOperation;
}

export function ruleMatches(rule: RuleLike, { resource, subresource, operation }: RuleTarget): boolean {
  return (
    scopeMatches(rule.scope, resource) &&
    anyOf(rule.operations, operation) &&
    anyOf(rule.apiGroups, resource.group) &&
    anyOf(rule.apiVersions, resource.version) &&
    (rule.resources ?? []).some((pattern) => resourceMatches(pattern, resource.plural, subresource))
  );
}

function scopeMatches(scope: string | undefined, { namespaced }: Resource): boolean {
  if (scope === undefined || scope === '*') return true;
  return scope === (namespaced ? 'Namespaced' : 'Cluster');
}

function anyOf(patterns: readonly string[] | undefined, value: string): boolean {
  return patterns !== undefined && (patterns.includes('*') || patterns.includes(value));
}

/** A pattern without a slash matches only the resource itself, not its subresources, even for `*`. */
function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const slash = pattern.indexOf('/');
  const wantedPlural = slash < 0 ? pattern : pattern.slice(0, slash);
  const wantedSubresource = slash < 0 ? '' : pattern.slice(slash + 1);
  return matchesAny(wantedPlural, plural) && matchesAny(wantedSubresource, subresource);
}

const matchesAny = (pattern: string, value: string) => pattern === '*' || pattern === value;

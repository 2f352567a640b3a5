/**
 * Formats rules for a SelfSubjectRulesReview (`kubectl auth can-i --list`): by resources and by paths, without
 * duplicates.
 */
import type { RuleList } from '#engine/auth/authorize.ts';
import type { RbacRule } from '#engine/auth/rbac/policy.ts';

export function listRules(rules: readonly RbacRule[], evaluationError: string | undefined): RuleList {
  const resourceRules = new Map<string, RuleList['resourceRules'][number]>();
  const nonResourceRules = new Map<string, RuleList['nonResourceRules'][number]>();
  for (const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } of rules) {
    if (resources?.length) keep(resourceRules, { verbs, apiGroups, resources, resourceNames });
    if (nonResourceURLs?.length) keep(nonResourceRules, { verbs, nonResourceURLs });
  }
  return {
    resourceRules: [...resourceRules.values()],
    nonResourceRules: [...nonResourceRules.values()],
    incomplete: false,
    ...(evaluationError === undefined ? {} : { evaluationError }),
  };
}

function keep<T>(rules: Map<string, T>, rule: T): void {
  const key = JSON.stringify(rule);
  if (!rules.has(key)) rules.set(key, rule);
}

/**
 * Formats permissions like Kubernetes' error messages: `{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`.
 */
import type { RbacRule } from '#engine/auth/rbac/policy.ts';
import { goQuotedList } from '#kube/go/go-text.ts';

/** Returns one line for each rule, sorted; permissions that differ only in the verb share a line. */
export function describeRules(rules: readonly RbacRule[]): string {
  return [...new Set(mergeVerbs(rules).map(describeRule))].sort().join('\n');
}

function mergeVerbs(rules: readonly RbacRule[]): RbacRule[] {
  const byTarget = new Map<string, RbacRule & { verbs: string[] }>();
  for (const { verbs, ...target } of rules) {
    // Paths are listed separately for each verb.
    const key = JSON.stringify(target.nonResourceURLs?.length ? [target, verbs] : target);
    const known = byTarget.get(key);
    if (known === undefined) byTarget.set(key, { ...target, verbs: [...verbs] });
    else known.verbs.push(...verbs);
  }
  return [...byTarget.values()];
}

function describeRule({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: RbacRule): string {
  const parts: [string, readonly string[] | undefined][] = [
    ['APIGroups', apiGroups],
    ['Resources', resources],
    ['NonResourceURLs', nonResourceURLs],
    ['ResourceNames', resourceNames],
    ['Verbs', verbs],
  ];
  const present = parts.filter(([, values]) => values !== undefined && values.length > 0);
  return `{${present.map(([name, values = []]) => `${name}:${goQuotedList(values)}`).join(', ')}}`;
}

/**
 * Compares the permissions of rules, for escalation checks and for repairing default roles. As in Kubernetes, wanted
 * rules are split into single permissions (one verb on one resource of one group, optionally with one name), and each
 * must be covered completely by one held rule.
 */
import { pathPrefix } from '#engine/auth/rbac/compiled-role.ts';
import type { RbacRule } from '#engine/auth/rbac/policy.ts';

const ALL = '*';
const NONE: readonly never[] = [];

/** Cost limits of one comparison, so that a malicious role cannot delay other requests. */
const MAX_COMPARISONS = 500_000;
const MAX_PERMISSIONS = 20_000;

interface HeldRule {
  readonly verbs: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly resources: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  readonly paths: readonly string[];
}

/**
 * Returns the permissions in `wanted` that `held` does not cover, or undefined if the comparison would take too long.
 */
export function findUncovered(held: readonly RbacRule[], wanted: readonly RbacRule[]): readonly RbacRule[] | undefined {
  const compiledHeld = held.map(compileHeld);
  const breadth = compiledHeld.length + sum(compiledHeld, ({ paths }) => paths.length);
  if (sum(wanted, sizeOf) * breadth > MAX_COMPARISONS) return undefined;
  // Most rules are covered by one rule as a whole and need not be split.
  const notCoveredAsWhole = wanted.filter((rule) => !compiledHeld.some((one) => coversRule(one, rule)));
  const permissions = sum(notCoveredAsWhole, permissionsIn);
  if (permissions > MAX_PERMISSIONS || permissions * breadth > MAX_COMPARISONS) return undefined;
  return notCoveredAsWhole
    .flatMap(singlePermissions)
    .filter((single) => !compiledHeld.some((one) => coversRule(one, single)));
}

function compileHeld({ verbs, apiGroups, resources, resourceNames, nonResourceURLs = NONE }: RbacRule): HeldRule {
  return {
    verbs: new Set(verbs),
    groups: new Set(apiGroups),
    resources: new Set(resources),
    names: new Set(resourceNames),
    paths: nonResourceURLs,
  };
}

/**
 * Reports whether one held rule covers the wanted rule. Exact for a single permission; a larger rule may also be
 * covered by several held rules together.
 */
function coversRule(held: HeldRule, wanted: RbacRule): boolean {
  const { verbs, apiGroups = NONE, resources = NONE, resourceNames = NONE, nonResourceURLs = NONE } = wanted;
  return (
    hasAll(held.verbs, verbs) &&
    hasAll(held.groups, apiGroups) &&
    (held.resources.has(ALL) || resources.every((resource) => coversResource(held.resources, resource))) &&
    coversNames(held.names, resourceNames) &&
    nonResourceURLs.every((path) => held.paths.some((pattern) => coversPath(pattern, path)))
  );
}

function hasAll(held: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return held.has(ALL) || wanted.every((value) => held.has(value));
}

function coversResource(held: ReadonlySet<string>, resource: string): boolean {
  if (held.has(resource)) return true;
  const slash = resource.indexOf('/');
  return slash >= 0 && held.has(`*${resource.slice(slash)}`);
}

/** Reports whether the held names cover the wanted names. Some names do not cover a rule for all names. */
function coversNames(held: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return held.size === 0 || (wanted.length > 0 && wanted.every((name) => held.has(name)));
}

function coversPath(pattern: string, path: string): boolean {
  return pattern === path || (pattern.endsWith(ALL) && path.startsWith(pathPrefix(pattern)));
}

function singlePermissions({
  verbs,
  apiGroups = NONE,
  resources = NONE,
  resourceNames = NONE,
  nonResourceURLs = NONE,
}: RbacRule): RbacRule[] {
  const singles: RbacRule[] = [];
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const single = { apiGroups: [group], resources: [resource], verbs: [verb] };
        if (resourceNames.length === 0) singles.push(single);
        else for (const name of resourceNames) singles.push({ ...single, resourceNames: [name] });
      }
    }
  }
  for (const path of nonResourceURLs) {
    for (const verb of verbs) singles.push({ nonResourceURLs: [path], verbs: [verb] });
  }
  return singles;
}

function permissionsIn({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: RbacRule): number {
  const named = (apiGroups?.length ?? 0) * (resources?.length ?? 0) * Math.max(1, resourceNames?.length ?? 0);
  return verbs.length * (named + (nonResourceURLs?.length ?? 0));
}

function sizeOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: RbacRule): number {
  const lists = [verbs, apiGroups, resources, resourceNames, nonResourceURLs];
  return sum(lists, (list) => list?.length ?? 0);
}

function sum<T>(values: readonly T[], count: (value: T) => number): number {
  return values.reduce((total, value) => total + count(value), 0);
}

/**
 * The compiled rules of a role, so that a request needs only a few lookups: rules are indexed by resource, and their
 * lists are sets.
 */
import type { ResourceRequestAttributes } from '#engine/auth/authorize.ts';
import type { RbacRule } from '#engine/auth/rbac/policy.ts';

const ALL = '*';
const NONE: readonly never[] = [];

interface Matcher {
  /** Undefined = any. */
  readonly verbs: ReadonlySet<string> | undefined;
  readonly groups: ReadonlySet<string> | undefined;
  readonly names: ReadonlySet<string> | undefined;
}

interface PathMatcher {
  readonly verbs: ReadonlySet<string> | undefined;
  readonly exact: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

export class CompiledRole {
  readonly rules: readonly RbacRule[];
  readonly #byResource = new Map<string, Matcher[]>();
  /** Matchers of rules for all resources with a subresource, by subresource. */
  readonly #bySubresource = new Map<string, Matcher[]>();
  readonly #ofAnyResource: Matcher[] = [];
  readonly #paths: PathMatcher[] = [];

  constructor(rules: readonly RbacRule[]) {
    this.rules = rules;
    for (const rule of rules) {
      this.#addResources(rule);
      const { nonResourceURLs } = rule;
      if (nonResourceURLs?.length) this.#paths.push(pathMatcher(rule.verbs, nonResourceURLs));
    }
  }

  #addResources(rule: RbacRule): void {
    const { verbs, apiGroups = NONE, resources = NONE, resourceNames = NONE } = rule;
    const names = resourceNames.length === 0 ? undefined : new Set(resourceNames);
    const matcher: Matcher = { verbs: setOf(verbs), groups: setOf(apiGroups), names };
    for (const resource of resources) {
      if (resource === ALL) this.#ofAnyResource.push(matcher);
      else if (resource.startsWith('*/')) push(this.#bySubresource, resource.slice(2), matcher);
      else push(this.#byResource, resource, matcher);
    }
  }

  /** `target` is the resource with its subresource: `pods/log`. */
  allows(target: string, attributes: ResourceRequestAttributes): boolean {
    if (anyFits(this.#ofAnyResource, attributes)) return true;
    const named = this.#byResource.get(target);
    if (named !== undefined && anyFits(named, attributes)) return true;
    if (attributes.subresource === '' || this.#bySubresource.size === 0) return false;
    const ofSubresource = this.#bySubresource.get(attributes.subresource);
    return ofSubresource !== undefined && anyFits(ofSubresource, attributes);
  }

  allowsPath(verb: string, path: string): boolean {
    for (const { verbs, exact, prefixes } of this.#paths) {
      if (verbs !== undefined && !verbs.has(verb)) continue;
      if (exact.has(path)) return true;
      for (const prefix of prefixes) if (path.startsWith(prefix)) return true;
    }
    return false;
  }
}

function anyFits(matchers: readonly Matcher[], { verb, group, name }: ResourceRequestAttributes): boolean {
  for (const { verbs, groups, names } of matchers) {
    if (verbs !== undefined && !verbs.has(verb)) continue;
    if (groups !== undefined && !groups.has(group)) continue;
    // A request without a name (create, list) matches no named rule.
    if (names !== undefined && !names.has(name)) continue;
    return true;
  }
  return false;
}

function pathMatcher(verbs: readonly string[], patterns: readonly string[]): PathMatcher {
  const prefixes = patterns.filter((pattern) => pattern.endsWith(ALL)).map(pathPrefix);
  return { verbs: setOf(verbs), exact: new Set(patterns), prefixes };
}

/** Removes trailing stars from a pattern. */
export function pathPrefix(pattern: string): string {
  let end = pattern.length;
  while (end > 0 && pattern[end - 1] === ALL) end--;
  return pattern.slice(0, end);
}

/** Returns undefined if a star matches everything. */
function setOf(values: readonly string[]): ReadonlySet<string> | undefined {
  return values.includes(ALL) ? undefined : new Set(values);
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

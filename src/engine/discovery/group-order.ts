/**
 * The order of groups and versions in discovery. Clients use the first match, so the order decides what `kubectl get
 * events` or an unversioned name means.
 */
import type { DiscoveredVersion } from '#engine/discovery/discovered-version.ts';
import { groupPriorityOf, versionPriorityOf } from '#engine/discovery/priorities.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { compareText } from '#lib/text/compare-text.ts';

export interface VersionOfGroup {
  readonly version: string;
  /** Sorted by plural; empty for an aggregated version. */
  readonly resources: readonly Resource[];
  readonly remote?: DiscoveredVersion;
}

export interface Group {
  readonly name: string;
  /** The preferred version first. */
  readonly versions: readonly VersionOfGroup[];
}

interface Ranked extends VersionOfGroup {
  readonly group: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
}

/** Returns all groups including the core group. No version is in both lists. */
export function groupsOf(resources: readonly Resource[], remote: readonly DiscoveredVersion[] = []): Group[] {
  const byGroup = Map.groupBy([...ranked(resources), ...remote.map(rankedRemote)], ({ group }) => group);
  return [...byGroup]
    .map(([name, versions]) => ({
      name,
      // The highest priority of its versions determines the priority of a group.
      priority: Math.max(...versions.map(({ groupPriority }) => groupPriority)),
      versions: versions.sort(byPriority),
    }))
    .sort((a, b) => b.priority - a.priority || compareText(a.name, b.name))
    .map(({ name, versions }) => ({ name, versions }));
}

export function groupNamed(
  resources: readonly Resource[],
  name: string,
  remote: readonly DiscoveredVersion[] = [],
): Group | undefined {
  const inGroup = ({ group }: { readonly group: string }) => group === name;
  return groupsOf(resources.filter(inGroup), remote.filter(inGroup))[0];
}

function ranked(resources: readonly Resource[]): Ranked[] {
  const byVersion = Map.groupBy(resources, ({ group, version }) => `${group}/${version}`);
  return [...byVersion.values()].map((members) => {
    const first = members.find(({ builtIn }) => builtIn) ?? members[0]!;
    return {
      group: first.group,
      version: first.version,
      groupPriority: groupPriorityOf(first),
      versionPriority: versionPriorityOf(first),
      resources: members.sort(byPlural),
    };
  });
}

function rankedRemote(remote: DiscoveredVersion): Ranked {
  const { group, version, groupPriority, versionPriority } = remote;
  return { group, version, groupPriority, versionPriority, resources: [], remote };
}

function byPriority(a: Ranked, b: Ranked): number {
  return b.versionPriority - a.versionPriority || compareApiVersions(a.version, b.version);
}

/** Returns the resources of one version, sorted by plural, or undefined if it is not served. */
export function resourcesIn(
  resources: readonly Resource[],
  group: string,
  version: string,
): readonly Resource[] | undefined {
  const members = resources.filter((resource) => resource.group === group && resource.version === version);
  return members.length === 0 ? undefined : members.sort(byPlural);
}

const byPlural = (a: Resource, b: Resource) => compareText(a.plural, b.plural);

const VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Compares versions, best first: v10, v2, v1, v2beta1, v1beta2, v1alpha1, then other names alphabetically. */
export function compareApiVersions(a: string, b: string): number {
  const left = VERSION.exec(a);
  const right = VERSION.exec(b);
  if (left === null || right === null) {
    if (left === null && right === null) return compareText(a, b);
    return left === null ? 1 : -1;
  }
  const stage = maturity(right[2]) - maturity(left[2]);
  return stage || Number(right[1]) - Number(left[1]) || Number(right[3] ?? 0) - Number(left[3] ?? 0);
}

function maturity(stage: string | undefined): number {
  if (stage === undefined) return 2;
  return stage === 'beta' ? 1 : 0;
}

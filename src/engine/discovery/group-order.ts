/**
 * Groups and versions in the order in which discovery shows them. Clients take the first match, so the order decides
 * what `kubectl get events` or an unversioned name means.
 */
import type { Resource } from '#engine/registry/resource.ts';

export interface VersionOfGroup {
  readonly version: string;
  /** Sorted by plural. */
  readonly resources: readonly Resource[];
}

export interface Group {
  readonly name: string;
  /** The preferred version first. */
  readonly versions: readonly VersionOfGroup[];
}

/** kube-apiserver's priorities: built-in groups as recorded from 1.32, custom ones by name after all of them. */
const BUILT_IN_ORDER: readonly string[] = [
  '',
  'apiregistration.k8s.io',
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
  'flowcontrol.apiserver.k8s.io',
];

const rankOf = new Map(BUILT_IN_ORDER.map((group, index) => [group, index]));

/** All groups, the core one included. */
export function groupsOf(resources: readonly Resource[]): Group[] {
  const byGroup = Map.groupBy(resources, (resource) => resource.group);
  const groups = [...byGroup].map(([name, members]) => ({ name, members, rank: rank(name, members) }));
  groups.sort((a, b) => a.rank - b.rank || compareText(a.name, b.name));
  return groups.map(({ name, members }) => ({ name, versions: versionsOf(members) }));
}

export function groupNamed(resources: readonly Resource[], group: string): Group | undefined {
  const members = resources.filter((resource) => resource.group === group);
  return members.length === 0 ? undefined : { name: group, versions: versionsOf(members) };
}

/** The resources of one served version, sorted by plural; undefined = not served. */
export function resourcesIn(
  resources: readonly Resource[],
  group: string,
  version: string,
): readonly Resource[] | undefined {
  const members = resources.filter((resource) => resource.group === group && resource.version === version);
  return members.length === 0 ? undefined : members.sort(byPlural);
}

function versionsOf(members: readonly Resource[]): VersionOfGroup[] {
  return [...Map.groupBy(members, (resource) => resource.version)]
    .map(([version, ofVersion]) => ({ version, resources: ofVersion.sort(byPlural) }))
    .sort((a, b) => compareVersions(a.version, b.version));
}

function rank(name: string, members: readonly Resource[]): number {
  if (!members.some((resource) => resource.builtIn)) return BUILT_IN_ORDER.length + 1;
  return rankOf.get(name) ?? BUILT_IN_ORDER.length;
}

const byPlural = (a: Resource, b: Resource) => compareText(a.plural, b.plural);

/** By code units, whatever the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** For sorting, best first: v10, v2, v1, v2beta1, v1beta2, v1alpha1, then other names in alphabetical order. */
export function compareVersions(a: string, b: string): number {
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

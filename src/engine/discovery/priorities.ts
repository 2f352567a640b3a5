/**
 * The priorities of the groups and versions that we serve, comparable with those of APIServices: kube-apiserver's
 * values for built-in groups; custom groups have low ones, and their versions are ordered by name.
 */
import type { Resource } from '#engine/registry/resource.ts';

const GROUPS: Readonly<Record<string, number>> = {
  // Above the maximum of any APIService, because it has none itself.
  'apiregistration.k8s.io': 20_001,
  '': 18_000,
  apps: 17_800,
  'events.k8s.io': 17_750,
  'authentication.k8s.io': 17_700,
  'authorization.k8s.io': 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  'certificates.k8s.io': 17_300,
  'networking.k8s.io': 17_200,
  policy: 17_100,
  'rbac.authorization.k8s.io': 17_000,
  'storage.k8s.io': 16_800,
  'admissionregistration.k8s.io': 16_700,
  'apiextensions.k8s.io': 16_700,
  'scheduling.k8s.io': 16_600,
  'coordination.k8s.io': 16_500,
  'node.k8s.io': 16_300,
  'discovery.k8s.io': 16_200,
  'flowcontrol.apiserver.k8s.io': 16_100,
};

const OTHER_BUILT_IN = 15_000;
const CORE_VERSION = 1;
const BUILT_IN_VERSION = 15;

export const CUSTOM_GROUP_PRIORITY = 1000;
export const CUSTOM_VERSION_PRIORITY = 100;

type Ranked = Pick<Resource, 'group' | 'builtIn'>;

export function groupPriorityOf({ group, builtIn }: Ranked): number {
  if (!builtIn) return CUSTOM_GROUP_PRIORITY;
  return Object.hasOwn(GROUPS, group) ? GROUPS[group]! : OTHER_BUILT_IN;
}

export function versionPriorityOf({ group, builtIn }: Ranked): number {
  if (!builtIn) return CUSTOM_VERSION_PRIORITY;
  return group === '' ? CORE_VERSION : BUILT_IN_VERSION;
}

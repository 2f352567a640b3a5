/** Names of kinds in OpenAPI documents: Go packages for built-in kinds, the reversed group for custom kinds. */
import type { Resource } from '#engine/registry/resource.ts';

export const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

export const OBJECT_META = `${META}.ObjectMeta`;
export const LIST_META = `${META}.ListMeta`;
export const STATUS = `${META}.Status`;
export const DELETE_OPTIONS = `${META}.DeleteOptions`;
export const PATCH = `${META}.Patch`;
export const SCALE = 'io.k8s.api.autoscaling.v1.Scale';

export const QUANTITY_MODEL = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
export const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString';
export const TIME = `${META}.Time`;

/** Go packages of the groups whose types are not in k8s.io/api. */
const PACKAGES_OF_GROUPS: Readonly<Record<string, string>> = {
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'apiregistration.k8s.io': 'io.k8s.kube-aggregator.pkg.apis.apiregistration',
};

/** Returns the model name of a type of the Kubernetes API: `core.v1.Container`, `meta.v1.LabelSelector`. */
export function modelOfType(name: string): string {
  const [group = '', ...rest] = name.split('.');
  if (group === 'meta') return `${META}.${rest.slice(1).join('.')}`;
  return [PACKAGES_OF_GROUPS[`${group}.k8s.io`] ?? `io.k8s.api.${group}`, ...rest].join('.');
}

type ResourceIdentity = Pick<Resource, 'group' | 'version' | 'builtIn'>;

/** Returns the model name of a kind: `io.k8s.api.core.v1.Pod`, `local.golden.v1.Gadget`. */
export function modelName({ group, version, builtIn }: ResourceIdentity, kind: string): string {
  if (!builtIn) return `${group.split('.').toReversed().join('.')}.${version}.${kind}`;
  const first = group === '' ? 'core' : group.split('.')[0]!;
  return `${PACKAGES_OF_GROUPS[group] ?? `io.k8s.api.${first}`}.${version}.${kind}`;
}

/** Returns the group part of an operation id: `CoreV1`, `RbacAuthorizationV1`, `GoldenLocalV1`. */
export function operationGroup({ group, version }: ResourceIdentity): string {
  const words = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split(/[.-]/);
  return [...words, version].map(capitalize).join('');
}

export function capitalize(word: string): string {
  return word === '' ? '' : word[0]!.toUpperCase() + word.slice(1);
}

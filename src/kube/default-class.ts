/** Recognizes the StorageClass that claims without a class get. Pure. */
import type { KubeObject } from '#kube/meta.ts';

export const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
/** Kubernetes still respects this one. */
const OLD_DEFAULT_CLASS = 'storageclass.beta.kubernetes.io/is-default-class';

export function isDefaultClass({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[DEFAULT_CLASS] === 'true' || annotations?.[OLD_DEFAULT_CLASS] === 'true';
}

/** Which StorageClass a claim means, and the one that stands in where none is named. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

/** How the class was named before there was a field for it; it still wins. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** `''`: none. */
export function classNameOf({ metadata, spec }: PersistentVolume | PersistentVolumeClaim): string {
  return annotationOf({ metadata }, CLASS_ANNOTATION) ?? spec.storageClassName ?? '';
}

/** Says neither a class nor that it wants none. */
export function lacksClass({ metadata, spec }: PersistentVolumeClaim): boolean {
  return annotationOf({ metadata }, CLASS_ANNOTATION) === undefined && spec.storageClassName === undefined;
}

/** Of several the newest, then the first by name. */
export function defaultClassOf(classes: readonly Stored<StorageClass>[]): Stored<StorageClass> | undefined {
  let best: Stored<StorageClass> | undefined;
  for (const one of classes) {
    if (!DEFAULT_ANNOTATIONS.some((key) => annotationOf(one, key) === 'true')) continue;
    if (best === undefined || isPreferred(one, best)) best = one;
  }
  return best;
}

function isPreferred({ metadata: a }: Stored<StorageClass>, { metadata: b }: Stored<StorageClass>): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp;
  return a.name < b.name;
}

/** Keys are known words, but what every object inherits is no annotation. */
export function annotationOf({ metadata }: Pick<KubeObject, 'metadata'>, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

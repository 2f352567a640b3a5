/** Determines the StorageClass of a claim, and the default class for claims that name none. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { isDefaultClass } from '#kube/default-class.ts';

/** The annotation that named the class before the field existed. It takes precedence. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

/** Returns '' if there is no class. */
export function classNameOf({ metadata, spec }: PersistentVolume | PersistentVolumeClaim): string {
  return storageAnnotationOf({ metadata }, CLASS_ANNOTATION) ?? spec.storageClassName ?? '';
}

/** Reports whether the claim neither names a class nor requests to have none. */
export function lacksClass({ metadata, spec }: PersistentVolumeClaim): boolean {
  return storageAnnotationOf({ metadata }, CLASS_ANNOTATION) === undefined && spec.storageClassName === undefined;
}

/** Returns the default class. Of several, the newest one is used, then the first by name. */
export function defaultClassOf(classes: readonly Stored<StorageClass>[]): Stored<StorageClass> | undefined {
  let best: Stored<StorageClass> | undefined;
  for (const one of classes) {
    if (!isDefaultClass(one)) continue;
    if (best === undefined || isPreferred(one, best)) best = one;
  }
  return best;
}

function isPreferred({ metadata: a }: Stored<StorageClass>, { metadata: b }: Stored<StorageClass>): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp > b.creationTimestamp;
  return a.name < b.name;
}

/** Returns an annotation, or undefined. Properties of Object.prototype are not annotations. */
export function storageAnnotationOf({ metadata }: Pick<KubeObject, 'metadata'>, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

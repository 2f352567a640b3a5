/** Determines the default StorageClass, and the claims that get it. Pure. */
import type { PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { isDefaultClass } from '#kube/default-class.ts';
import { STORAGE_CLASS_ANNOTATION, storageAnnotationOf } from '#kube/storage-class-name.ts';

/** Reports whether the claim neither names a class nor requests to have none. */
export function lacksClass({ metadata, spec }: PersistentVolumeClaim): boolean {
  return (
    storageAnnotationOf({ metadata }, STORAGE_CLASS_ANNOTATION) === undefined && spec.storageClassName === undefined
  );
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

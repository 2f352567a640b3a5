/** Builds the patch that sets and removes annotations of an object under review. */
import type { PatchOperation } from '#admission/review.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/** The value of each annotation after the patch; undefined if it is to be absent. */
export type AnnotationValues = readonly (readonly [key: string, value: unknown])[];

export function readAnnotation(object: KubeObject | undefined, key: string): unknown {
  const annotations: unknown = object?.metadata.annotations;
  return isRecord(annotations) ? annotations[key] : undefined;
}

/** Patches only annotations that differ. If the map has a wrong type, the server refuses it. */
export function patchAnnotations({ metadata }: KubeObject, values: AnnotationValues): PatchOperation[] {
  const present: unknown = metadata.annotations;
  if (present === undefined || present === null) {
    const wanted = values.filter(([, value]) => value !== undefined);
    if (wanted.length === 0) return [];
    return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(wanted) }];
  }
  if (!isRecord(present)) return [];
  return values
    .filter(([key, value]) => present[key] !== value)
    .map(([key, value]) => {
      const path = formatPointer(['metadata', 'annotations', key]);
      return value === undefined ? { op: 'remove', path } : { op: 'add', path, value };
    });
}

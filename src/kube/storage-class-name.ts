/** The StorageClass that a claim or a volume names. Pure. */
import type { KubeObject } from '#kube/meta.ts';

/** The annotation that named the class before the field existed. It takes precedence. */
export const STORAGE_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

interface Storage extends Pick<KubeObject, 'metadata'> {
  readonly spec?: { readonly storageClassName?: string };
}

/** Returns '' if there is no class. */
export function classNameOf({ metadata, spec }: Storage): string {
  return storageAnnotationOf({ metadata }, STORAGE_CLASS_ANNOTATION) ?? spec?.storageClassName ?? '';
}

/** Returns an annotation, or undefined. Properties of Object.prototype are not annotations. */
export function storageAnnotationOf({ metadata }: Pick<KubeObject, 'metadata'>, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

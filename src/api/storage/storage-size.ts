/**
 * The size of the storage of a node: the largest volume that it can ever hold, in bytes. Nodes report it in an annotation;
 * the provisioner refuses claims that are larger. Pure.
 */
import { STORAGE_BYTES_ANNOTATION } from '#api/names.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export interface StorageSize {
  /** Of volumes that only this node can access. */
  readonly nodeBytes: number;
  /** Of volumes that all nodes can access. */
  readonly sharedBytes: number;
}

export function formatStorageSize({ nodeBytes, sharedBytes }: StorageSize): Record<string, string> {
  return { [STORAGE_BYTES_ANNOTATION]: JSON.stringify({ nodeBytes, sharedBytes }) };
}

/** Returns undefined if the node does not report a valid size. */
export function storageSizeOf({ metadata }: Pick<KubeObject, 'metadata'>): StorageSize | undefined {
  const text = metadata.annotations?.[STORAGE_BYTES_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return undefined;
    const { nodeBytes, sharedBytes } = value;
    return isSize(nodeBytes) && isSize(sharedBytes) ? { nodeBytes, sharedBytes } : undefined;
  } catch {
    return undefined;
  }
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

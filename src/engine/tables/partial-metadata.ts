/** PartialObjectMetadata: objects for clients that need only metadata, such as garbage collectors. */
import type { KubeObject, ListMeta, ObjectMeta } from '#kube/meta.ts';
import type { MetaVersion } from '#engine/tables/negotiate-representation.ts';

export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata';
  apiVersion: string;
  metadata: ObjectMeta;
}

interface PartialObjectMetadataList {
  kind: 'PartialObjectMetadataList';
  apiVersion: string;
  metadata: ListMeta;
  items: PartialObjectMetadata[];
}

export function partialMetadata(object: KubeObject, version: MetaVersion = 'v1'): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata };
}

export function partialMetadataList(
  objects: readonly KubeObject[],
  listMeta: ListMeta,
  version: MetaVersion = 'v1',
): PartialObjectMetadataList {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: listMeta,
    items: objects.map((object) => partialMetadata(object, version)),
  };
}

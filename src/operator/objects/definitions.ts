/** CustomResourceDefinitions of our kinds, and of third-party kinds that we need. */
import { buildCrd } from '#api/custom-kinds/custom-kind.ts';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '#kube/core-kinds.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';
import { STORAGE_PROFILES, storageProfileSpec, storageProfileStatus } from '#api/storage/storage-profile.ts';
import { foreignDefinition } from '#operator/objects/foreign-definition.ts';

const own: readonly DesiredObject[] = customKinds.map((kind) => {
  const { metadata, spec } = buildCrd(kind);
  return desiredObject(CUSTOM_RESOURCE_DEFINITIONS, { ...metadata, name: metadata.name ?? '' }, { spec });
});

/**
 * The definition of CDI's StorageProfiles, for clusters without CDI. We create the profiles of our own classes; the
 * administrator creates those of other classes.
 */
export const storageProfileDefinition = foreignDefinition({
  type: STORAGE_PROFILES,
  shortNames: [],
  description: 'The capabilities of the StorageClass of the same name.',
  properties: { spec: storageProfileSpec, status: storageProfileStatus },
  required: ['spec'],
  columns: [],
});

export const definitions: readonly DesiredObject[] = [...own, ...volumeSnapshotDefinitions, storageProfileDefinition];

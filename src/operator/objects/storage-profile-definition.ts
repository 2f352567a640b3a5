/**
 * The definition of StorageProfiles, for clusters without CDI, whose kind it is. We make the profiles of our own classes
 * (storage-profiles.ts); those of other classes are the administrator's.
 */
import { STORAGE_PROFILES, storageProfileSpec, storageProfileStatus } from '#api/storage-profile.ts';
import { foreignDefinition } from '#operator/objects/foreign-definition.ts';

export const storageProfileDefinition = foreignDefinition({
  type: STORAGE_PROFILES,
  shortNames: [],
  description: 'What the volumes of the StorageClass of the same name can be.',
  properties: { spec: storageProfileSpec, status: storageProfileStatus },
  required: ['spec'],
  columns: [],
});

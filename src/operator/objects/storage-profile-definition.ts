/**
 * StorageProfiles, for clusters without CDI, whose kind they are: an administrator says there what the volumes of a class
 * can be. None is made by us.
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

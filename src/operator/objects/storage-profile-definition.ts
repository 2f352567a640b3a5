/**
 * The definition of CDI's StorageProfiles, for clusters without CDI. We create the profiles of our own classes
 * (storage-profiles.ts); the administrator creates those of other classes.
 */
import { STORAGE_PROFILES, storageProfileSpec, storageProfileStatus } from '#api/storage/storage-profile.ts';
import { foreignDefinition } from '#operator/objects/foreign-definition.ts';

export const storageProfileDefinition = foreignDefinition({
  type: STORAGE_PROFILES,
  shortNames: [],
  description: 'The capabilities of the StorageClass of the same name.',
  properties: { spec: storageProfileSpec, status: storageProfileStatus },
  required: ['spec'],
  columns: [],
});

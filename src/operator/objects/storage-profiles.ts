/**
 * The StorageProfiles of our own classes. Each lists one volume mode and one access mode, so that choosing a class for
 * persistent state also chooses its modes.
 *
 * On a cluster with CDI, CDI writes these objects as well: it creates one for every StorageClass, sets its own labels
 * and copies `spec.claimPropertySets` to the status. We write that one field only, so that neither reverts the other.
 */
import { STORAGE_PROFILES } from '#api/storage/storage-profile.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { OWN_CLASSES } from '#operator/objects/storage-classes.ts';

export const storageProfileObjects: readonly DesiredObject[] = OWN_CLASSES.map(({ name, volumeMode, accessMode }) =>
  desiredObject(
    STORAGE_PROFILES,
    { name },
    { spec: { claimPropertySets: [{ accessModes: [accessMode], volumeMode }] } },
    { isShared: true },
  ),
);

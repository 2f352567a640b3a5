/**
 * The StorageProfiles of our own classes: which modes a claim of the class asks for. Each lists one volume mode and one
 * access mode, so that the choice of a class for persistent state is the choice of its modes.
 *
 * On a cluster with CDI these objects are CDI's, too: it makes one for every StorageClass, sets its own labels and copies
 * `spec.claimPropertySets` to the status. We write that one field and nothing else, so that neither undoes the other.
 */
import { STORAGE_PROFILES } from '#api/storage-profile.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { OWN_CLASSES } from '#operator/objects/storage-classes.ts';

export const storageProfiles: readonly Desired[] = OWN_CLASSES.map(({ name, volumeMode, accessMode }) =>
  desired(
    STORAGE_PROFILES,
    { name },
    { spec: { claimPropertySets: [{ accessModes: [accessMode], volumeMode }] } },
    { isShared: true },
  ),
);

/**
 * The classes of our own volumes: StorageClasses, their StorageProfiles, and the VolumeSnapshotClass. Once they exist,
 * the administrator decides which class is the default.
 */
import { LOCAL_PROVISIONER, LOCAL_DRIVER } from '#api/names.ts';
import { STORAGE_CLASSES, type AccessMode, type VolumeMode } from '#kube/core-kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { STORAGE_PROFILES } from '#api/storage/storage-profile.ts';
import { DEFAULT_SNAPSHOT_CLASS, VOLUME_SNAPSHOT_CLASSES } from '#kube/volume-snapshot-kinds.ts';
import { DEFAULT_CLASS } from '#kube/default-class.ts';

interface OwnStorageClass {
  readonly name: string;
  /**
   * `node`: the data is on the node of the first pod that uses it; `shared`: all nodes of this machine can access it.
   */
  readonly scope: 'node' | 'shared';
  readonly volumeMode: VolumeMode;
  readonly accessMode: AccessMode;
  readonly isDefault?: boolean;
}

const OWN_CLASSES: readonly OwnStorageClass[] = [
  { name: 'local', scope: 'node', volumeMode: 'Filesystem', accessMode: 'ReadWriteOnce', isDefault: true },
  { name: 'shared', scope: 'shared', volumeMode: 'Filesystem', accessMode: 'ReadWriteMany' },
  { name: 'local-block', scope: 'node', volumeMode: 'Block', accessMode: 'ReadWriteOnce' },
  { name: 'shared-block', scope: 'shared', volumeMode: 'Block', accessMode: 'ReadWriteMany' },
];

export const storageClassObjects: readonly DesiredObject[] = OWN_CLASSES.map(({ name, scope, isDefault }) =>
  desiredObject(
    STORAGE_CLASSES,
    { name },
    {
      provisioner: LOCAL_PROVISIONER,
      parameters: { scope },
      reclaimPolicy: 'Delete',
      volumeBindingMode: scope === 'node' ? 'WaitForFirstConsumer' : 'Immediate',
      allowVolumeExpansion: true,
    },
    isDefault === true ? { initialAnnotations: { [DEFAULT_CLASS]: 'true' } } : {},
  ),
);

/**
 * Each profile lists one volume mode and one access mode, so that choosing a class for persistent state also chooses its
 * modes. On a cluster with CDI, CDI writes these objects as well: it creates one for every StorageClass, sets its own
 * labels and copies `spec.claimPropertySets` to the status. We write that one field only, so that neither reverts the
 * other.
 */
export const storageProfileObjects: readonly DesiredObject[] = OWN_CLASSES.map(({ name, volumeMode, accessMode }) =>
  desiredObject(
    STORAGE_PROFILES,
    { name },
    { spec: { claimPropertySets: [{ accessModes: [accessMode], volumeMode }] } },
    { isShared: true },
  ),
);

export const volumeSnapshotClassObjects: readonly DesiredObject[] = [
  desiredObject(
    VOLUME_SNAPSHOT_CLASSES,
    { name: 'selfsame-local' },
    { driver: LOCAL_DRIVER, deletionPolicy: 'Delete' },
    { initialAnnotations: { [DEFAULT_SNAPSHOT_CLASS]: 'true' } },
  ),
];

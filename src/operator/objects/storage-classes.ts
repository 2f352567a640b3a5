/**
 * The StorageClasses of our provisioner, with the modes for claims of each class (storage-profiles.ts). Once they
 * exist, the administrator decides which class is the default.
 */
import { LOCAL_PROVISIONER } from '#api/names.ts';
import { STORAGE_CLASSES, type AccessMode, type VolumeMode } from '#kube/core-kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';

const DEFAULT_CLASS = { 'storageclass.kubernetes.io/is-default-class': 'true' };

export interface OwnStorageClass {
  readonly name: string;
  /**
   * `node`: the data is on the node of the first pod that uses it; `shared`: all nodes of this machine can access it.
   */
  readonly scope: 'node' | 'shared';
  readonly volumeMode: VolumeMode;
  readonly accessMode: AccessMode;
  readonly isDefault?: boolean;
}

export const OWN_CLASSES: readonly OwnStorageClass[] = [
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
    isDefault === true ? { initialAnnotations: DEFAULT_CLASS } : {},
  ),
);

/** The VolumeSnapshotClass of our own volumes. Once it exists, the administrator decides which class is the default. */
import { LOCAL_DRIVER } from '#api/names.ts';
import { DEFAULT_SNAPSHOT_CLASS, VOLUME_SNAPSHOT_CLASSES } from '#kube/volume-snapshot-kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';

export const volumeSnapshotClassObjects: readonly DesiredObject[] = [
  desiredObject(
    VOLUME_SNAPSHOT_CLASSES,
    { name: 'selfsame-local' },
    { driver: LOCAL_DRIVER, deletionPolicy: 'Delete' },
    { initialAnnotations: { [DEFAULT_SNAPSHOT_CLASS]: 'true' } },
  ),
];

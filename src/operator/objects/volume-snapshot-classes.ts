/** The class of snapshots of our own volumes. Which class is the default is for the administrator to say, once it is there. */
import { LOCAL_DRIVER } from '#api/names.ts';
import { DEFAULT_SNAPSHOT_CLASS, VOLUME_SNAPSHOT_CLASSES } from '#kube/volume-snapshot-kinds.ts';
import { desired, type Desired } from '#operator/desired.ts';

export const volumeSnapshotClasses: readonly Desired[] = [
  desired(
    VOLUME_SNAPSHOT_CLASSES,
    { name: 'selfsame-local' },
    { driver: LOCAL_DRIVER, deletionPolicy: 'Delete' },
    { initialAnnotations: { [DEFAULT_SNAPSHOT_CLASS]: 'true' } },
  ),
];

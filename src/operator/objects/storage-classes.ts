/**
 * The classes of our provisioner. Those with `block` in their names do the same, for claims that say volumeMode Block. Which class is the default is for the administrator to say, once they are there.
 */
import { LOCAL_PROVISIONER } from '#api/names.ts';
import { STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { desired, type Desired } from '#operator/desired.ts';

const DEFAULT_CLASS = { 'storageclass.kubernetes.io/is-default-class': 'true' };

interface Class {
  readonly name: string;
  /** `node`: the data lies where its first user was put; `shared`: every node of this machine sees it. */
  readonly scope: 'node' | 'shared';
  readonly isDefault?: boolean;
}

const CLASSES: readonly Class[] = [
  { name: 'local', scope: 'node', isDefault: true },
  { name: 'shared', scope: 'shared' },
  { name: 'local-block', scope: 'node' },
  { name: 'shared-block', scope: 'shared' },
];

export const storageClasses: readonly Desired[] = CLASSES.map(({ name, scope, isDefault }) =>
  desired(
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

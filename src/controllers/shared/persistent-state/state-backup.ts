/** The name of the persistent state among the volume backups of a snapshot. Pure. */
import { STATE_VOLUME, stateAnnotationOf } from '#api/storage/persistent-state.ts';
import type { ContentSpec, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

/** Returns `persistent-state-for-<vm>` or, if a disk of the VM has that name, one that no disk can have. */
export function stateBackupName({ metadata, spec }: Pick<VirtualMachine, 'metadata' | 'spec'>): string {
  const name = stateAnnotationOf(metadata.name ?? '');
  const isTaken = spec.template.spec?.volumes?.some((volume) => volume.name === name) === true;
  return isTaken ? STATE_VOLUME : name;
}

export function isStateBackup({ source }: ContentSpec, { volumeName }: VolumeBackup): boolean {
  const { metadata, spec } = source.virtualMachine;
  return volumeName === stateBackupName({ metadata, spec });
}

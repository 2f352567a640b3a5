/** Determines whether a snapshot is needed by a restore, for which the deletion of its data has to wait. */
import { VIRTUAL_MACHINE_RESTORES, type VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { snapshotKeysOfRestore, UNFINISHED_BY_SNAPSHOT } from '#controllers/snapshot/sources.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { LiveUse } from '#runtime/live-use.ts';

/**
 * Reports whether an unfinished restore uses the snapshot. `held`: the snapshot or its content. If it is under deletion,
 * the restores are read live, because without the copies a restore that has begun could not be completed.
 */
type RestoreCheck = (snapshotKey: string, held: Stored, options: { signal: AbortSignal }) => Promise<boolean>;

/** `restores` needs the index UNFINISHED_BY_SNAPSHOT. */
export function createRestoreCheck(
  restores: Informer<VirtualMachineRestore>,
  reader: Pick<Reader, 'list'>,
): RestoreCheck {
  const use = new LiveUse(reader, VIRTUAL_MACHINE_RESTORES, snapshotKeysOfRestore);
  return async (snapshotKey, held, options) => {
    if (restores.byIndex(UNFINISHED_BY_SNAPSHOT, snapshotKey).length > 0) return true;
    return isDeleting(held) && (await use.isUsed(snapshotKey, held.metadata, options));
  };
}

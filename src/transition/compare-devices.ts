/**
 * Compares the devices of a restarted guest with those that it had before. The history of the identity record has the
 * changes of each start, with the uid of the instance. Pure.
 */
import { renderChanges } from '#api/identity/identity-change-text.ts';
import { devicePartOf } from '#api/identity/identity-changes.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

/**
 * Returns the device changes at the start of the instance, or undefined while the record does not have this instance
 * yet. Devices in the first entry of a record are not changes.
 */
export function deviceChangesOfStart(
  record: Stored<VirtualMachineIdentity> | undefined,
  vmi: Stored<VirtualMachineInstance>,
): string[] | undefined {
  const { instance, deviceHash, history = [] } = record?.status ?? {};
  const reportedHash = vmi.status?.deviceHash;
  if (!reportedHash || instance !== vmi.metadata.uid || deviceHash !== reportedHash) return undefined;
  return history
    .filter((entry) => entry.instance === vmi.metadata.uid && !entry.what?.startsWith('first seen '))
    .flatMap(({ changes = [] }) => renderChanges(changes.filter((change) => devicePartOf(change) !== undefined)));
}

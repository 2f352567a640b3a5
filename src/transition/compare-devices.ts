/**
 * Compares the devices of a guest that came up again with those that it had before. The history of the identity record
 * holds what each start changed, with the uid of the instance, so that nobody has to remember what was before. Pure.
 */
import { changeTexts } from '#api/identity-change-text.ts';
import { devicePartOf } from '#api/identity-changes.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

/**
 * Returns the changes of devices that the start of the instance brought, or undefined while the record does not tell of
 * this instance yet. Devices of a guest that was first seen then have not changed.
 */
export function deviceChangesOfStart(
  record: Stored<VirtualMachineIdentity> | undefined,
  vmi: Stored<VirtualMachineInstance>,
): string[] | undefined {
  const { instance, deviceHash, history = [] } = record?.status ?? {};
  const told = vmi.status?.deviceHash;
  if (!told || instance !== vmi.metadata.uid || deviceHash !== told) return undefined;
  return history
    .filter((entry) => entry.instance === vmi.metadata.uid && !entry.what?.startsWith('first seen '))
    .flatMap(({ changes = [] }) => changeTexts(changes.filter((change) => devicePartOf(change) !== undefined)));
}

/**
 * Whether a guest that came up again sees the devices that it saw before. The identity record tells: what a start changed
 * stands in its history with the uid of the instance, so that nobody has to remember what was before. Pure.
 */
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

/** Undefined while the record does not tell of this instance yet. The machine itself is left out: it is to change. */
export function deviceChangesOfStart(
  record: Stored<VirtualMachineIdentity> | undefined,
  vmi: Stored<VirtualMachineInstance>,
): string[] | undefined {
  const { instance, deviceHash, history = [] } = record?.status ?? {};
  const told = vmi.status?.deviceHash;
  if (!told || instance !== vmi.metadata.uid || deviceHash !== told) return undefined;
  const cause = `the start of instance ${vmi.metadata.uid}`;
  return history.flatMap(({ what = '', cause: why }) => (why === cause && !isOfMachine(what) ? [what] : []));
}

const isOfMachine = (what: string) => what.startsWith('machine type changed ') || what.startsWith('first seen ');

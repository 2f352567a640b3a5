/** The circumstances under which a snapshot was taken, and their meaning for a restore. Pure. */
import type { INDICATIONS } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';

export type Indication = (typeof INDICATIONS)[number];

export const INDICATION_MESSAGES: Readonly<Record<Indication, string>> = {
  Online: 'The VM was running while the snapshot was taken',
  NoGuestAgent: 'No guest agent responded: the disks are as after a power failure',
  GuestAgent: 'The guest agent froze the filesystems for the snapshot',
  QuiesceTimeout: 'The guest agent did not freeze the filesystems in time',
  Paused: 'The VM was paused while the snapshot was taken',
  PartialSnapshot: 'Some volumes with data are not part of the snapshot',
};

/** Returns the indications of a running instance. With GuestAgent, the filesystems are to be frozen. */
export function indicationsOfInstance({ status }: VirtualMachineInstance): Indication[] {
  const paused: Indication[] = isTrue(status?.conditions, 'Paused') ? ['Paused'] : [];
  // A paused guest cannot respond, even if its agent is connected.
  const hasAgent = paused.length === 0 && isTrue(status?.conditions, 'AgentConnected');
  return ['Online', hasAgent ? 'GuestAgent' : 'NoGuestAgent', ...paused];
}

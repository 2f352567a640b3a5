/** Under which circumstances a snapshot was taken, and what each means for who restores it. Pure. */
import type { INDICATIONS } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isTrue } from '#kube/conditions.ts';

export type Indication = (typeof INDICATIONS)[number];

export const INDICATION_MESSAGES: Readonly<Record<Indication, string>> = {
  Online: 'The VM was running while the snapshot was taken',
  NoGuestAgent: 'No guest agent answered: the disks are as after a loss of power',
  GuestAgent: 'The guest agent froze the filesystems for the snapshot',
  QuiesceTimeout: 'The guest agent did not freeze the filesystems in time',
  Paused: 'The VM was paused while the snapshot was taken',
  PartialSnapshot: 'Some volumes with data are not part of the snapshot',
};

/** What the running instance means for the snapshot. A freeze of the filesystems is asked for where it says GuestAgent. */
export function indicationsOf({ status }: VirtualMachineInstance): Indication[] {
  const paused: Indication[] = isTrue(status?.conditions, 'Paused') ? ['Paused'] : [];
  // A guest that is paused cannot answer, whatever its agent did before.
  const answers = paused.length === 0 && isTrue(status?.conditions, 'AgentConnected');
  return ['Online', answers ? 'GuestAgent' : 'NoGuestAgent', ...paused];
}

/** The list of all custom kinds of Selfsame. */
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { kubevirt } from '#api/kubevirt/kind.ts';
import { guestNetwork } from '#api/network/guest-network.ts';
import { networkAddress } from '#api/network/network-address.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { virtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { virtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { virtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { virtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { virtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import { virtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';

export const customKinds: readonly CustomKind[] = [
  virtualMachine,
  virtualMachineInstance,
  virtualMachineInstanceMigration,
  virtualMachineIdentity,
  kubevirt,
  virtualMachineSnapshot,
  virtualMachineSnapshotContent,
  virtualMachineRestore,
  guestNetwork,
  networkAddress,
];

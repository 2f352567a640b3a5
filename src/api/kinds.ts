/** Every kind of ours. */
import type { CustomKind } from '#api/custom-kind.ts';
import { kubevirt } from '#api/kubevirt/kind.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { virtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { virtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';

export const customKinds: readonly CustomKind[] = [
  virtualMachine,
  virtualMachineInstance,
  virtualMachineIdentity,
  kubevirt,
];

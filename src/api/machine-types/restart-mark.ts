/**
 * The mark that a VM must be restarted to get its new machine type: status.machineTypeRestartRequired, with the uid of
 * the instance that must end. The transition Job sets it; it is cleared when that instance is gone (ADR 18). Pure.
 *
 *   true, uid of the running instance ────────────► kept
 *   true, uid of another instance, or none runs ──► false
 *   true, without a uid (older versions) ─────────► decided by the types: gets the uid of the instance, or becomes false
 */
import { instanceType, runningInstance, specType } from '#api/machine-types/select-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

export type RestartMark = Pick<VmStatus, 'machineTypeRestartRequired' | 'machineTypeRestartInstanceUID'>;

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

export const UNMARKED: RestartMark = { machineTypeRestartRequired: false };

/** Returns the mark that requires this instance to end. */
export function buildRestartMark({ metadata }: Vmi): RestartMark {
  return { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: metadata.uid };
}

export function isRestartMarked({ status }: Pick<VirtualMachine, 'status'>): boolean {
  return status?.machineTypeRestartRequired === true;
}

/** Reports whether the VM is marked because of this instance. */
export function isMarkedForInstance(vm: Pick<VirtualMachine, 'status'>, { metadata }: Vmi): boolean {
  return isRestartMarked(vm) && vm.status?.machineTypeRestartInstanceUID === metadata.uid;
}

/**
 * Returns the correct mark of the VM. `vmi` is the instance of the VM's name; it may be undefined only if it is certain
 * that there is none.
 */
export function restartMarkOf(vm: Vm, vmi: Vmi | undefined): RestartMark {
  const { machineTypeRestartRequired: required, machineTypeRestartInstanceUID: uid } = vm.status ?? {};
  if (required === undefined) return {};
  const running = runningInstance(vm, vmi);
  if (!required || running === undefined) return UNMARKED;
  if (uid) return running.metadata.uid === uid ? buildRestartMark(running) : UNMARKED;
  const runs = running.status?.machine?.type;
  // The type is not known before the guest runs; the mark is decided again then.
  if (runs === undefined) return { machineTypeRestartRequired: true };
  // The instance was created from the type in the spec, which is not an alias: a restart would change nothing.
  return specType(vm) === instanceType(running) && runs === specType(vm) ? UNMARKED : buildRestartMark(running);
}

export interface TypeMeanings {
  /** Machine type of VMs that name none. */
  readonly defaultType: string;
  /** Resolves an alias by the current nodes; returns undefined if it is not known. */
  canonical?(type: string): string | undefined;
}

/** Like restartMarkOf, for the Job, which also knows which type a restart would give. */
export function decideRestartMark(vm: Vm, vmi: Vmi | undefined, { defaultType, canonical }: TypeMeanings): RestartMark {
  const mark = restartMarkOf(vm, vmi);
  const runs = runningInstance(vm, vmi)?.status?.machine?.type;
  if (mark.machineTypeRestartRequired !== true || runs === undefined) return mark;
  const next = specType(vm) || defaultType;
  return (canonical?.(next) ?? next) === runs ? UNMARKED : mark;
}

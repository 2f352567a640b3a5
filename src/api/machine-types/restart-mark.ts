/**
 * The mark that a VM has to be restarted for its new machine type: status.machineTypeRestartRequired, and beside it the uid
 * of the instance that it is about. The transition Job sets it; it is over when that instance is gone (ADR 18). Pure.
 *
 *   true, uid of the instance that runs ──► stays
 *   true, uid of another, or none runs ───► false
 *   true, without a uid (older versions) ─► judged by the types: gets the uid of the instance, or becomes false
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

/** Returns the mark that says that this very instance has to go. */
export function markFor({ metadata }: Vmi): RestartMark {
  return { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: metadata.uid };
}

export function isMarked({ status }: Pick<VirtualMachine, 'status'>): boolean {
  return status?.machineTypeRestartRequired === true;
}

/** Reports whether the VM is marked because of this instance. */
export function isMarkedFor(vm: Pick<VirtualMachine, 'status'>, { metadata }: Vmi): boolean {
  return isMarked(vm) && vm.status?.machineTypeRestartInstanceUID === metadata.uid;
}

/**
 * Returns the mark as it ought to be, for whoever knows the instance of the VM's name. `vmi` is undefined only where there
 * is none for sure.
 */
export function restartMarkOf(vm: Vm, vmi: Vmi | undefined): RestartMark {
  const { machineTypeRestartRequired: required, machineTypeRestartInstanceUID: uid } = vm.status ?? {};
  if (required === undefined) return {};
  const running = runningInstance(vm, vmi);
  if (!required || running === undefined) return UNMARKED;
  if (uid) return running.metadata.uid === uid ? markFor(running) : UNMARKED;
  const runs = running.status?.machine?.type;
  // Not known before it runs; then there is another look.
  if (runs === undefined) return { machineTypeRestartRequired: true };
  // Made from what the spec asks for, which is a full type: there is nothing to restart for.
  return specType(vm) === instanceType(running) && runs === specType(vm) ? UNMARKED : markFor(running);
}

export interface TypeMeanings {
  /** Of VMs that name no type. */
  readonly defaultType: string;
  /** Returns what an alias stands for on the nodes of today, or undefined where that is not known. */
  canonical?(type: string): string | undefined;
}

/** As restartMarkOf, for the Job, which also knows which type a restart would give. */
export function judgeMark(vm: Vm, vmi: Vmi | undefined, { defaultType, canonical }: TypeMeanings): RestartMark {
  const mark = restartMarkOf(vm, vmi);
  const runs = runningInstance(vm, vmi)?.status?.machine?.type;
  if (mark.machineTypeRestartRequired !== true || runs === undefined) return mark;
  const next = specType(vm) || defaultType;
  return (canonical?.(next) ?? next) === runs ? UNMARKED : mark;
}

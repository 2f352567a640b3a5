/** Decides whether a VM has reached the state that start, stop or restart asked for. Pure, except for the reading. */
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { isFinal, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { findInstance, findObject } from '#cli/connection/vm-objects.ts';
import type { WaitState } from '#cli/wait/wait-until.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface VmView {
  /** Undefined if the VM does not exist. */
  readonly vm: Stored<VirtualMachine> | undefined;
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
}

/** Returns the VM and its instance as they are. */
export async function readVmView(api: Pick<ApiConnection, 'get' | 'namespace'>, name: string): Promise<VmView> {
  const vm = await findObject(api, VIRTUAL_MACHINES, name);
  return { vm, vmi: vm === undefined ? undefined : await findInstance(api, vm) };
}

/** Decides from the objects before the request and now. */
export type PowerJudge = (name: string, before: VmView, now: VmView) => WaitState;

/** Waits for an instance that did not exist before. `isPaused`: also until its guest is paused. */
export function judgeStart(isPaused: boolean): PowerJudge {
  return (name, before, { vm, vmi }) => {
    if (vm === undefined || isDeleting(vm)) return { failed: `Cannot start VM ${name}: it was deleted` };
    const failure = vm.status?.startFailure;
    if (failure?.lastFailedVMIUID !== undefined && failure.lastFailedVMIUID !== failedBefore(before)) {
      const why = failure.message || failure.reason || 'no reason given';
      return { failed: `Cannot start VM ${name}: ${why}; it is tried again, see kubectl describe vm ${name}` };
    }
    if (vmi === undefined || vmi.metadata.uid === before.vmi?.metadata.uid) return { waiting: stateText(name, vm) };
    if (isFinal(vmi)) {
      const why = vmi.status?.message || 'its guest has shut down';
      return { failed: `Cannot confirm that VM ${name} is running: ${why}; see kubectl describe vmi ${name}` };
    }
    const paused = isTrue(vmi.status?.conditions, 'Paused');
    if (vmi.status?.phase !== 'Running' || (isPaused && !paused)) return { waiting: stateText(name, vm, vmi) };
    const node = vmi.status.nodeName ?? 'an unknown node';
    return { done: `VM ${name} is ${paused ? 'paused' : 'running'} on ${node}` };
  };
}

function failedBefore({ vm }: VmView): string | undefined {
  return vm?.status?.startFailure?.lastFailedVMIUID;
}

/** Waits until no guest runs and the VM reports that. */
export function judgeStop(name: string, before: VmView, { vm, vmi }: VmView): WaitState {
  if (vm === undefined) return { done: `VM ${name} is stopped; it was deleted meanwhile` };
  const known = before.vmi?.metadata.uid;
  if (vmi !== undefined && !isFinal(vmi)) {
    if (known === undefined || vmi.metadata.uid === known) return { waiting: stateText(name, vm, vmi) };
    return { failed: `Cannot confirm that VM ${name} is stopped: it was stopped and has been started again` };
  }
  if (vm.status?.printableStatus !== 'Stopped') return { waiting: stateText(name, vm) };
  return { done: `VM ${name} is stopped` };
}

/** Returns the state of a VM as one line, with the reason if it cannot start. */
function stateText(name: string, { status }: VirtualMachine, vmi?: VirtualMachineInstance): string {
  const failure = findCondition(status?.conditions, 'Failure');
  const blocked = ['PodScheduled', 'Synchronized']
    .map((type) => findCondition(vmi?.status?.conditions, type))
    .find((condition) => condition?.status === 'False');
  const why = blocked?.message || (failure?.status === 'True' && failure.message);
  return `VM ${name}: ${status?.printableStatus ?? 'Unknown'}${why ? ` (${why})` : ''}`;
}

/**
 * The restart of one instance, as one write. Not the subresource `restart`: that restarts whatever runs when it is called,
 * and between our look and the call somebody else may have restarted the VM. What it writes, KubeVirt's own
 * `status.stateChangeRequests` ("stop a specific VMI then start a new one"), names the instance; so do we, and the VM must
 * be as we saw it. A request that comes too late for its instance is done already, and nothing is restarted twice. Pure.
 */
import { can, denialError, type JsonPatchOperation } from '#api/can.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';

export type RestartVerb = 'restart' | 'stop';

export interface VmPatch {
  readonly operations: readonly JsonPatchOperation[];
  readonly subresource?: 'status';
}

/** Throws ApiError where the VM cannot be restarted as it is. `old` was read after the VM. */
export function restartRequest(
  verb: RestartVerb,
  vm: Stored<VirtualMachine>,
  old: Stored<VirtualMachineInstance>,
): VmPatch {
  const { name, uid, resourceVersion } = vm.metadata;
  const answer = can(verb, { name, vm, vmi: old });
  if ('denied' in answer) throw denialError(answer.denied);
  const [step, ...more] = answer.allowed;
  invariant(more.length === 0, `${verb} without options is one write`);
  invariant(step?.do === 'patchVm' || step?.do === 'patchVmStatus', `${verb} writes the VM`);
  const operations: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    ...step.patch,
  ];
  return step.do === 'patchVm' ? { operations } : { operations, subresource: 'status' };
}

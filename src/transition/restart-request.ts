/**
 * Builds the patch that restarts one specific instance. The subresource `restart` is not suitable: it restarts whatever
 * runs when it is called, and a user may have restarted the VM since it was read. Like the subresource, the patch
 * writes KubeVirt's `status.stateChangeRequests` ("stop a specific VMI then start a new one"), which names the
 * instance, but it also requires the VM to be unchanged. A request for an instance that is already gone has no effect,
 * so no guest is restarted twice. Pure.
 */
import { decideVerb } from '#api/verbs/decide-verb.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';
import { refusalToApiError, type JsonPatchOperation } from '#api/verbs/verb.ts';

export type RestartVerb = 'restart' | 'stop';

export interface VmJsonPatch {
  readonly operations: readonly JsonPatchOperation[];
  readonly subresource?: 'status';
}

/** Returns the patch; throws ApiError if the VM cannot be restarted now. `old` must be read after the VM. */
export function buildRestartPatch(
  verb: RestartVerb,
  vm: Stored<VirtualMachine>,
  old: Stored<VirtualMachineInstance>,
): VmJsonPatch {
  const { name, uid, resourceVersion } = vm.metadata;
  const decision = decideVerb(verb, { name, vm, vmi: old });
  if ('denied' in decision) throw refusalToApiError(decision.denied);
  const [step, ...more] = decision.allowed;
  invariant(more.length === 0, `${verb} without options is one write`);
  invariant(step?.do === 'patchVm' || step?.do === 'patchVmStatus', `${verb} writes the VM`);
  const operations: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    ...step.patch,
  ];
  return step.do === 'patchVm' ? { operations } : { operations, subresource: 'status' };
}

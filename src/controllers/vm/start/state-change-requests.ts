/**
 * Reads the queue in status.stateChangeRequests, to which subresources/ and transition/ append, and removes completed
 * requests. A request is complete when the observed state is what it requests, so a crash between the action and the
 * write is harmless. Pure.
 */
import type { StateChangeRequest } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';

type Requests = readonly StateChangeRequest[];

/** Returns the requests that are not complete, in order. */
export function pendingRequests(world: VmWorld): Requests {
  let requests: Requests = world.vm.status?.stateChangeRequests ?? [];
  for (let [first] = requests; first !== undefined && isDone(first, world); [first] = requests) {
    requests = requests.slice(1);
  }
  // The request is stored before the failed instance is deleted: afterwards the failure is not known any more.
  return requests.length === 0 && mustRerun(world) ? [{ action: 'Start' }] : requests;
}

export function isStartNext(world: VmWorld): boolean {
  return pendingRequests(world)[0]?.action === 'Start';
}

export function isPausedStartNext(world: VmWorld): boolean {
  const [first] = pendingRequests(world);
  return first?.action === 'Start' && first.data?.['paused'] === 'true';
}

export function isStopNext(world: VmWorld): boolean {
  return pendingRequests(world)[0]?.action === 'Stop';
}

function isDone({ action, uid }: StateChangeRequest, { vmi }: VmWorld): boolean {
  if (action === 'Stop') return vmi === undefined || uid !== vmi.metadata.uid;
  return vmi !== undefined && !isDeleting(vmi) && !isFinal(vmi);
}

function mustRerun({ vm, vmi }: VmWorld): boolean {
  if (runStrategyOf(vm) !== 'RerunOnFailure' || isDeleting(vm)) return false;
  return vmi?.status?.phase === 'Failed' && !isDeleting(vmi);
}

/**
 * The queue in status.stateChangeRequests: subresources/ and transition/ append to it, here it is read and what is done is taken off.
 * A request is done when the world looks as it asks, so that a crash between doing and writing changes nothing. Pure.
 */
import { isFinal, runStrategyOf } from '#api/can.ts';
import type { StateChangeRequest } from '#api/virtual-machine/schema.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';

type Requests = readonly StateChangeRequest[];

/** What is still to be done, the next one first. */
export function requestsOf(world: VmWorld): Requests {
  let requests: Requests = world.vm.status?.stateChangeRequests ?? [];
  for (let [first] = requests; first !== undefined && isDone(first, world); [first] = requests) {
    requests = requests.slice(1);
  }
  // Written down before the failed instance is deleted: afterwards nobody knows that it has failed.
  return requests.length === 0 && isToRerun(world) ? [{ action: 'Start' }] : requests;
}

export function startIsNext(world: VmWorld): boolean {
  return requestsOf(world)[0]?.action === 'Start';
}

export function pausedStartIsNext(world: VmWorld): boolean {
  const [first] = requestsOf(world);
  return first?.action === 'Start' && first.data?.['paused'] === 'true';
}

export function stopIsNext(world: VmWorld): boolean {
  return requestsOf(world)[0]?.action === 'Stop';
}

function isDone({ action, uid }: StateChangeRequest, { vmi }: VmWorld): boolean {
  if (action === 'Stop') return vmi === undefined || uid !== vmi.metadata.uid;
  return vmi !== undefined && !isDeleting(vmi) && !isFinal(vmi);
}

function isToRerun({ vm, vmi }: VmWorld): boolean {
  if (runStrategyOf(vm) !== 'RerunOnFailure' || isDeleting(vm)) return false;
  return vmi?.status?.phase === 'Failed' && !isDeleting(vmi);
}

/** Errors of the simulated hypervisor: queues of injected failures, and refusals because of a guest's state. */
import { HypervisorError } from '../hypervisor.ts';
import type { FakeGuest } from './fake-guest.ts';

/** Returns empty queues of errors for the next calls to fail with. */
export function newFailureQueues(): Record<'create' | 'plug' | 'receive' | 'send' | 'store', HypervisorError[]> {
  return { create: [], plug: [], receive: [], send: [], store: [] };
}

export function wrongStateError(verb: string, { record }: FakeGuest, expected: string): HypervisorError {
  return new HypervisorError(
    `Cannot ${verb} domain "${record.name}": the guest is ${record.current.state}; expected ${expected}`,
  );
}

/** What a simulated hypervisor says no with: because of its guests, or because a test wants it to. */
import { HypervisorError } from '../hypervisor.ts';
import type { FakeGuest } from './fake-guest.ts';

/** Those that the next calls fail with. */
export function failures(): Record<'create' | 'plug' | 'receive' | 'send' | 'store', HypervisorError[]> {
  return { create: [], plug: [], receive: [], send: [], store: [] };
}

export function refusal(verb: string, { record }: FakeGuest, expected: string): HypervisorError {
  return new HypervisorError(
    `Cannot ${verb} domain "${record.name}": it is ${record.current.state}; expected ${expected}`,
  );
}

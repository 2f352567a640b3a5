/** QEMU's words for what a guest does, in ours. Pure. */
import type { DomainState } from '../hypervisor.ts';

/** `never ran` is a guest that waits for its first instruction. */
export type RunState = DomainState | { readonly state: 'never ran' };

export const PAUSED: DomainState = { state: 'paused' };
export const RUNNING: DomainState = { state: 'running' };

/** Events after which the state may be another. */
export const STATE_EVENTS: ReadonlySet<string> = new Set(['STOP', 'RESUME', 'SHUTDOWN', 'GUEST_PANICKED']);

/** From the answer to query-status. */
export function runState(answer: unknown): RunState {
  const { status } = answer as { status: string };
  switch (status) {
    case 'running':
    case 'suspended': // The guest sleeps (ACPI S3); it wakes without us.
      return RUNNING;
    case 'prelaunch':
      return { state: 'never ran' };
    case 'inmigrate':
      return { state: 'incoming' };
    case 'finish-migrate':
    case 'postmigrate':
      return { state: 'paused', why: 'migration' };
    case 'shutdown':
      return { state: 'ended', how: 'shutdown' };
    case 'guest-panicked':
      return { state: 'ended', how: 'crashed', message: 'the guest panicked' };
    case 'internal-error':
      return { state: 'ended', how: 'crashed', message: 'QEMU met an internal error' };
    case 'io-error':
      return { state: 'paused', why: 'ioError' };
    default:
      // watchdog among them: resume goes on from there.
      return PAUSED;
  }
}

/** Translates QEMU's run states to domain states. Pure. */
import type { DomainState } from '#node/hypervisor/hypervisor.ts';

/** `never ran`: the guest has not executed its first instruction. */
export type QemuRunState = DomainState | { readonly state: 'never ran' };

export const PAUSED: DomainState = { state: 'paused' };
export const RUNNING: DomainState = { state: 'running' };

/** Events after which the state may have changed. */
export const STATE_EVENTS: ReadonlySet<string> = new Set(['STOP', 'RESUME', 'SHUTDOWN', 'GUEST_PANICKED']);

/** Parses the answer to query-status. */
export function parseRunState(answer: unknown): QemuRunState {
  const { status } = answer as { status: string };
  switch (status) {
    case 'running':
    case 'suspended': // The guest sleeps (ACPI S3) and wakes up by itself.
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
      return { state: 'ended', how: 'crashed', message: 'QEMU had an internal error' };
    case 'io-error':
      return { state: 'paused', why: 'ioError' };
    default:
      // Includes `watchdog`, from which resume continues.
      return PAUSED;
  }
}

/** The outcome of an interrupted migration, as far as each side can determine it. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { OutcomeResponse } from '#node/migration/messages.ts';

/**
 * Returns the outcome that the migration controller has written to the instance's status, or undefined if it has written
 * none. A source removes its record only after that, so the status must be read again after a source answered `aborted`.
 */
export function concludedOutcome(
  vmi: VirtualMachineInstance | undefined,
  uid: string,
  node: string,
): 'migrated' | 'aborted' | undefined {
  const state = vmi?.status?.migrationState;
  if (state?.migrationUid === undefined) return undefined;
  if (state.migrationUid === uid) {
    if (state.completed !== true) return undefined;
    return state.failed === true ? 'aborted' : 'migrated';
  }
  // The next migration starts on this node, so this one arrived here.
  return state.sourceNode === node ? 'migrated' : undefined;
}

/**
 * Returns the outcome according to the source's record. With `isInProgress`, a session of this process has neither aborted
 * nor made `migrated` durable; the record then does not count, because writing it can still fail.
 */
export function sourceOutcome(
  domain: DomainInfo | undefined,
  uid: string,
  isInProgress: boolean,
): OutcomeResponse['is'] {
  if (isInProgress) return 'undecided';
  const { migration, current } = domain ?? {};
  if (migration?.uid === uid && migration.role === 'source') {
    if (migration.step === 'migrated' || migration.step === 'left') return 'migrated';
    // Decided only when the guest was taken back.
    if (migration.step === 'sending' && current?.state !== 'ended') return 'undecided';
  }
  return 'aborted';
}

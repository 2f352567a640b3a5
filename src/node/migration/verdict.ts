/** What became of a migration, as far as each side can tell. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { Outcome } from '#node/migration/messages.ts';

/**
 * For a target that was cut off, by what the controller of migrations has written; undefined: it does not say. A source
 * forgets its record only after that was written: what it answers must be read together with it, and this afterwards.
 */
export function writtenVerdict(
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
  // The next one begins here already: so this one came here.
  return state.sourceNode === node ? 'migrated' : undefined;
}

/**
 * What the source answers. `isUnderWay`: a session of this process has neither given it up nor brought to disk that it has
 * migrated; what the record says meanwhile may be on its way there, and fail.
 */
export function outcomeOf(domain: Domain | undefined, uid: string, isUnderWay: boolean): Outcome['is'] {
  if (isUnderWay) return 'undecided';
  const { migration, current } = domain ?? {};
  if (migration?.uid === uid && migration.role === 'source') {
    if (migration.step === 'migrated' || migration.step === 'left') return 'migrated';
    // Taken back first: then it is true for good.
    if (migration.step === 'sending' && current?.state !== 'ended') return 'undecided';
  }
  return 'aborted';
}

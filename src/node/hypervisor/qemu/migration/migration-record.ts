/**
 * The migration in a domain's record, and what follows from it for the domain's state and for requests. Pure. The steps
 * are described in ../migration.ts.
 */
import type { DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration, SourceStep, TargetStep } from '#node/hypervisor/migration.ts';
import type { MigrationRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { PAUSED, type QemuRunState } from '#node/hypervisor/qemu/monitor/run-state.ts';

const INCOMING: DomainState = { state: 'incoming' };
const MIGRATED_AWAY: DomainState = { state: 'paused', why: 'migration' };
const INCOMING_STEPS: ReadonlySet<TargetStep> = new Set<TargetStep>(['waiting', 'stored', 'committed']);
const MIGRATED_AWAY_STEPS: ReadonlySet<SourceStep> = new Set<SourceStep>(['migrated', 'left']);

/** Returns the public part of the record. */
export function migrationView(record: MigrationRecord): DomainMigration {
  const { uid, peer } = record;
  return record.role === 'source'
    ? { uid, peer, role: record.role, step: record.step }
    : { uid, peer, role: record.role, step: record.step };
}

/** Reports whether the guest has migrated to the target for good. */
export function hasMigratedAway(record: MigrationRecord | undefined): boolean {
  return record?.role === 'source' && MIGRATED_AWAY_STEPS.has(record.step);
}

/** Reports whether the guest has not continued here yet. */
function isIncoming(record: MigrationRecord | undefined): boolean {
  return record?.role === 'target' && INCOMING_STEPS.has(record.step);
}

function isSending(record: MigrationRecord | undefined): boolean {
  return record?.role === 'source' && record.step === 'sending';
}

/** Combines QEMU's state with the migration record: only both together tell which node owns the guest. */
export function combineStates<T extends QemuRunState>(record: MigrationRecord | undefined, found: T): T | DomainState {
  if (record === undefined) return found;
  if (hasMigratedAway(record)) return MIGRATED_AWAY;
  if (found.state === 'ended') return found;
  if (isIncoming(record)) return record.step === 'committed' && found.state === 'running' ? found : INCOMING;
  // Paused by the user, independently of the migration.
  return isPausedByMigration(found) && !record.goesOn ? PAUSED : found;
}

/** Reports whether a migration, not the user, paused the guest. */
export function isPausedByMigration(found: QemuRunState): boolean {
  return found.state === 'paused' && found.why === 'migration';
}

/** Returns why the guest must not be changed now, or undefined if it may. */
export function changeRefusal(record: MigrationRecord | undefined): string | undefined {
  if (record === undefined) return undefined;
  return isSending(record) ? `the guest is migrating to node "${record.peer}"` : accessRefusal(record);
}

/** Returns why the guest cannot be used on this node, or undefined if it can. */
export function accessRefusal(record: MigrationRecord | undefined): string | undefined {
  if (record === undefined) return undefined;
  if (isIncoming(record)) return `the guest has not arrived yet from node "${record.peer}"`;
  return hasMigratedAway(record) ? `the guest has migrated to node "${record.peer}"` : undefined;
}

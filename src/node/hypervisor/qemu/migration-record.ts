/**
 * What domain.json keeps of the migration that a domain has to do with, and what follows from it for whoever looks at the
 * domain or wants something of it. Pure. The steps are ../migration.ts's.
 */
import type { DomainState } from '../hypervisor.ts';
import type { DomainMigration, MovingDisk, SourceStep, TargetStep } from '../migration.ts';
import { PAUSED, type RunState } from './run-state.ts';

export type MigrationRecord = DomainMigration & {
  /** It was running when it began: it runs again at its end, at whichever side. */
  readonly goesOn: boolean;
  readonly disks: readonly MovingDisk[];
};

export type SourceRecord = Extract<MigrationRecord, { role: 'source' }>;
export type TargetRecord = Extract<MigrationRecord, { role: 'target' }>;

export const INCOMING: DomainState = { state: 'incoming' };
const GONE: DomainState = { state: 'paused', why: 'migration' };
const INCOMING_STEPS: ReadonlySet<TargetStep> = new Set<TargetStep>(['waiting', 'stored', 'committed']);
const GONE_STEPS: ReadonlySet<SourceStep> = new Set<SourceStep>(['migrated', 'left']);

/** For everybody else: without what is only ours. */
export function migrationView(record: MigrationRecord): DomainMigration {
  const { uid, peer } = record;
  return record.role === 'source'
    ? { uid, peer, role: record.role, step: record.step }
    : { uid, peer, role: record.role, step: record.step };
}

/** The guest runs elsewhere, for good. */
export function hasGone(record: MigrationRecord | undefined): boolean {
  return record?.role === 'source' && GONE_STEPS.has(record.step);
}

/** The guest is still elsewhere, or has not gone on here yet. */
export function isIncoming(record: MigrationRecord | undefined): boolean {
  return record?.role === 'target' && INCOMING_STEPS.has(record.step);
}

export function isSending(record: MigrationRecord | undefined): boolean {
  return record?.role === 'source' && record.step === 'sending';
}

/** What QEMU says, seen with what was promised: only the two together tell whose the guest is. */
export function stateWith<T extends RunState>(record: MigrationRecord | undefined, found: T): T | DomainState {
  if (record === undefined) return found;
  if (hasGone(record)) return GONE;
  if (found.state === 'ended') return found;
  if (isIncoming(record)) return record.step === 'committed' && found.state === 'running' ? found : INCOMING;
  // It would stand still without the migration, too: because its owner wants it so.
  return standsStill(found) && !record.goesOn ? PAUSED : found;
}

/** By a migration, not by its owner. */
export function standsStill(found: RunState): boolean {
  return found.state === 'paused' && found.why === 'migration';
}

/** Why nothing about the guest may change now; undefined where it may. */
export function whyBusy(record: MigrationRecord | undefined): string | undefined {
  if (record === undefined) return undefined;
  return isSending(record) ? `it is moving to node "${record.peer}"` : whyAbsent(record);
}

/** Why the guest cannot be asked for anything here; undefined where it can. */
export function whyAbsent(record: MigrationRecord | undefined): string | undefined {
  if (record === undefined) return undefined;
  if (isIncoming(record)) return `it has not arrived from node "${record.peer}" yet`;
  return hasGone(record) ? `it has gone to node "${record.peer}"` : undefined;
}

/**
 * The record of a domain, which one node agent leaves for the next: domain.json. Its member names are stored and must
 * not change.
 *
 *   before QEMU starts          definition                    an interrupted start: nothing of it ran yet
 *   after that, before it runs  + startedAtMs, qemu, swtpm    QEMU knows whether the guest ran
 *   once it ends                + ended                       final; QEMU may still have to quit
 *   while disks are copied      + copies                      QEMU knows the progress of those without an outcome
 *   before a freeze             + frozen                      the next node agent thaws the guest then, at the latest
 *   during a migration          + migration                   every step before it takes effect (../migration.ts)
 *
 * The definition changes with hotplug: it contains every device of which QEMU may have any part.
 */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { CopyState, DiskCopy, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { FreezeRecord } from '#node/hypervisor/guest-freeze.ts';
import type { DomainMigration, MovingDisk } from '#node/hypervisor/migration.ts';
import type { ProcessIdentity } from '#node/hypervisor/qemu/process/process.ts';

export type EndedState = Extract<DomainState, { state: 'ended' }>;

export interface StartedProcesses {
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly qemu: ProcessIdentity;
  readonly swtpm?: ProcessIdentity;
}

export interface CopyRecord extends DiskCopy {
  readonly outcome?: Exclude<CopyState, { state: 'copying' }>;
}

/** The migration in the record; migration/migration-record.ts says what follows from it. */
export type MigrationRecord = DomainMigration & {
  /** The guest was running when the migration began, so it runs again when it ends, on either side. */
  readonly goesOn: boolean;
  readonly disks: readonly MovingDisk[];
};

export type SourceRecord = Extract<MigrationRecord, { role: 'source' }>;
export type TargetRecord = Extract<MigrationRecord, { role: 'target' }>;

export interface DomainRecord {
  readonly version: 1;
  readonly definition: DomainDefinition;
  /** The guest runs in a sandbox (sandbox/sandbox.ts). Absent: as our own user, or as the user of older versions. */
  readonly sandboxed?: boolean;
  /** Created paused: a guest that never ran is in its intended state. */
  readonly paused: boolean;
  readonly started?: StartedProcesses;
  readonly ended?: EndedState;
  readonly copies?: readonly CopyRecord[];
  readonly migration?: MigrationRecord;
  readonly frozen?: FreezeRecord | undefined;
}

/**
 * Returns undefined if the text is not a record of this domain. Records are written atomically, where guests cannot
 * write.
 */
export function parseRecord(text: string, id: string): DomainRecord | undefined {
  try {
    const value = JSON.parse(text) as Partial<DomainRecord> | null;
    return value?.version === 1 && value.definition?.id === id ? (value as DomainRecord) : undefined;
  } catch {
    return undefined;
  }
}

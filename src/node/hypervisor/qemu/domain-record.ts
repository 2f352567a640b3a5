/**
 * What one agent leaves for the next about a domain: domain.json.
 *
 *   before QEMU is started      definition                    a start that was cut off: nothing of it ran yet
 *   after it, before it runs    + startedAtMs, qemu, swtpm    QEMU knows whether the guest ran
 *   once it ends                + ended                       final; QEMU may still have to quit
 *   while disks are copied      + copies                      QEMU knows how far those without an outcome are
 *   before it is frozen         + frozen                      whoever finds it thaws the guest, at the latest then
 *   once it moves, or comes     + migration                   each step before it counts (../migration.ts)
 *
 * The definition changes with devices that are plugged in and let go: what QEMU may have anything of is in it.
 */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import type { CopyState, DiskCopy, DomainState } from '../hypervisor.ts';
import type { FreezeRecord } from '../guest-freeze.ts';
import type { MigrationRecord } from './migration-record.ts';
import type { ProcessIdentity } from './process.ts';

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

export interface DomainRecord {
  readonly version: 1;
  readonly definition: DomainDefinition;
  /** Made to wait: a guest that never ran is as it should be. */
  readonly paused: boolean;
  readonly started?: StartedProcesses;
  readonly ended?: EndedState;
  readonly copies?: readonly CopyRecord[];
  readonly migration?: MigrationRecord;
  readonly frozen?: FreezeRecord | undefined;
}

/** Undefined for what is no record of ours. It was written whole by an agent, in a place where no guest can write. */
export function parseRecord(text: string, id: string): DomainRecord | undefined {
  try {
    const value = JSON.parse(text) as Partial<DomainRecord> | null;
    return value?.version === 1 && value.definition?.id === id ? (value as DomainRecord) : undefined;
  } catch {
    return undefined;
  }
}

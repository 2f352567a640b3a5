/** Builds the world of an agent during a migration from a few facts. */
import type { MigrationProgress, MigrationState } from '#api/migration/migration-state.ts';
import { MIGRATION_COMMITTED_CONDITION, MIGRATION_UID_LABEL } from '#api/names.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import { reportedStatus } from '#node/domains/vmi-report.ts';
import type { DomainInfo, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import type { MigrationNotes } from '#node/migration/migrations.ts';

const NOW = 1_900_000_000_000;
export const UID = 'm-1';
const STORED = { uid: 'u', resourceVersion: '1', creationTimestamp: timestamp(NOW), namespace: 'ns' };
export const node: DomainWorld['node'] = {
  name: 'n1',
  hostIp: '127.0.0.1',
  sandboxed: false,
  capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' },
};
export const REQUESTED: MigrationState = {
  migrationUid: UID,
  sourceNode: 'n1',
  targetNode: 'n2',
  targetPod: 'launcher-2',
  startTimestamp: timestamp(NOW),
};
const inspection = { definition: { ...aDefinition(), devices: [] }, unplugging: [] };
const reading = { devices: [], hash: 'h1', revision: 7 };

export interface MigrationFacts {
  readonly state?: MigrationState | undefined;
  readonly reported?: MigrationProgress;
  readonly current?: DomainState;
  readonly record?: DomainMigration;
  readonly notes?: MigrationNotes;
  readonly target?: boolean;
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  readonly isCommitted?: boolean;
  readonly deleted?: number;
  readonly noDomain?: boolean;
  readonly noVmi?: boolean;
  readonly noPod?: boolean;
  readonly nodeName?: string;
  readonly leaving?: readonly string[];
  readonly attempt?: DomainWorld['attempt'];
  readonly afterMs?: number;
}

function aPod({ target, phase = 'Running', isCommitted, deleted }: MigrationFacts): Stored<Pod> {
  const deletion =
    deleted === undefined ? {} : { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted };
  const conditions = isCommitted ? [{ type: MIGRATION_COMMITTED_CONDITION, status: 'True' as const }] : [];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...STORED, name: 'launcher', ...deletion, ...(target && { labels: { [MIGRATION_UID_LABEL]: UID } }) },
    spec: { containers: [] },
    status: { phase, conditions },
  };
}

export function aWorld(facts: MigrationFacts): DomainWorld {
  const {
    state,
    reported: reportedProgress,
    current = { state: 'running' },
    record,
    notes,
    target,
    leaving = [],
    noDomain,
  } = facts;
  const domain: DomainInfo = {
    ...{ id: 'u', name: 'ns/db', machine: 'pc-q35-7.2', startedAtMs: NOW, current, deviceEvents: 0 },
    ...(record && { migration: record }),
  };
  const status = {
    ...{ nodeName: facts.nodeName ?? (target ? 'n2' : 'n1'), phase: 'Running' as const, activePods: { u: '' } },
    ...(state && { migrationState: state }),
    ...(reportedProgress && { migrationProgress: reportedProgress }),
  };
  const vmi = {
    ...{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { ...STORED, name: 'db' } },
    ...{ spec: { domain: {} }, status },
  };
  const reported = reportedStatus(vmi, { domain, inspection, reading, hotplug: [], node, nowMs: NOW });
  return {
    pod: facts.noPod ? undefined : aPod(facts),
    vmi: facts.noVmi ? undefined : { ...vmi, status: reported },
    domain: noDomain ? undefined : domain,
    inspection: { ...inspection, unplugging: leaving },
    ...{ reading, readingDueAtMs: 0, hotplugNotes: new Map(), stop: undefined, attempt: facts.attempt },
    ...(notes && { migration: notes }),
    ...{ node, nowMs: NOW + (facts.afterMs ?? 0), elapsedMs: 0 },
  };
}

/** Returns an action in short form, for example `reportPod Running`. */
export function summarizeAction(action: DomainAction): string {
  if (action.do !== 'reportPod') return action.do;
  const { phase, reason, notReady, state, committed } = action.view;
  const more = [reason ?? notReady ?? state.waiting?.reason, committed?.is ? 'committed' : undefined];
  return ['reportPod', phase, ...more.filter((word) => word !== undefined)].join(' ');
}

export const sourceRecord = (step: string, uid = UID) => ({ uid, peer: 'n2', role: 'source', step }) as DomainMigration;
export const targetRecord = (step: string, uid = UID) => ({ uid, peer: 'n1', role: 'target', step }) as DomainMigration;
export const session = (phase: MigrationProgress['phase'] = 'Copying', isOver = false): MigrationNotes => ({
  outgoing: { uid: UID, progress: { migrationUid: UID, phase }, isOver },
});
export const incoming: MigrationNotes = { incoming: { uid: UID } };
export const outcomeQuery = (more: object): MigrationNotes => ({
  outcomeQuery: { uid: UID, isPending: false, tries: 1, dueAtMs: 0, ...more },
});

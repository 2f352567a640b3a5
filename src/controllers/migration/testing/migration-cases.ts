/** Worlds and short words for tables of what is done about a migration. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  INCOMING_NODE_ANNOTATION,
  MIGRATION_COMMITTED_CONDITION,
  INCOMING_MIGRATION_ANNOTATION,
  RECOVERY_ANNOTATION,
} from '#api/names.ts';
import { stateClaimName, stateSuffixOf } from '#api/persistent-state.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aVolume,
  aWorld,
  SOURCE_POD,
  TARGET_POD,
  told,
  TOLD,
  UID,
} from '#controllers/migration/migration-world.fixture.ts';
import type { Migration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import type { Change } from '#runtime/plan.ts';

export const DELETED = { deletionTimestamp: '2030-01-01T00:00:00Z' };
const ANNOUNCED = aVolume({ [INCOMING_NODE_ANNOTATION]: 'node-b', [INCOMING_MIGRATION_ANNOTATION]: UID });
export const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True', message: UID } as const;

/** `patch Pod virt-launcher-db`; statuses are told apart. */
export function brief(change: Change): string {
  const { type } = change;
  const name = change.do === 'create' ? change.object.metadata.name : change.name.name;
  const part = change.do === 'patch' && change.subresource ? `/${change.subresource}` : '';
  return `${change.do} ${type.kind}${part} ${name}`;
}

export interface Case {
  readonly world: MigrationWorld;
  readonly phase?: string;
  readonly message?: string | RegExp;
  readonly does?: readonly string[];
}

export const VMI = 'patch VirtualMachineInstance/status db';
export const MAKE_CLAIM = `create PersistentVolumeClaim ${stateClaimName('db', stateSuffixOf(UID))}`;
export const MAKE_POD = `create Pod ${TARGET_POD}`;
export const DROP_POD = `delete Pod ${TARGET_POD}`;
export const RELEASE_TARGET = `patch Pod ${TARGET_POD}`;
export const SOURCE_POD_PATCH = `patch Pod ${SOURCE_POD}`;
export const END = 'patch VirtualMachineInstanceMigration go';

export function older(name: string, status?: MigrationStatus): Migration {
  const migration = aMigration(status);
  return { ...migration, metadata: { ...migration.metadata, name, uid: `${name}-uid` } };
}

export const incoming = [ANNOUNCED];

/** What is done, and what the migration then says of itself. */
export function proveDecisions(aspect: string, cases: Readonly<Record<string, Case>>): void {
  describe(aspect, () => {
    for (const [sentence, { world, phase, message, does = [] }] of Object.entries(cases)) {
      test(sentence, () => {
        const plan = decideMigration(world);
        const status = plan.status as MigrationStatus | undefined;
        assert.deepEqual(plan.changes.map(brief), does);
        if (phase !== undefined) assert.equal(status?.phase, phase);
        if (message instanceof RegExp) assert.match(status?.message ?? '', message);
        else if (status !== undefined) assert.equal(status.message, message);
      });
    }
  });
}

export function withVolume(annotations: Record<string, string>): MigrationWorld['claims'] {
  const [[name, view] = assert.fail()] = [...aWorld().claims];
  return new Map([[name, { ...view, volume: aVolume(annotations) }]]);
}

/** The node of the guest is lost, which is known; people have said where it is. */
export function silent(recovery: string, more: Partial<MigrationWorld> = {}): MigrationWorld {
  const migration = recovering(recovery, [{ type: 'ManualRecoveryRequired', status: 'True' }]);
  return told({ migration, sourceAnswers: false, incoming, ...more });
}

export function recovering(recovery: string, conditions: MigrationStatus['conditions']): Migration {
  const { status } = told().migration;
  return aMigration({ ...status, conditions }, { annotations: { [RECOVERY_ANNOTATION]: recovery } });
}

export function failing(failureReason: string): Migration {
  const ended = { completed: true, failed: true, failureReason };
  return aMigration({ phase: 'Running', message: failureReason, migrationState: { ...TOLD, ...ended } });
}

export function unschedulable() {
  const message = '0/1 nodes';
  return aPod('target', {
    nodeName: '',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
}

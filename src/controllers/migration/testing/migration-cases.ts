/** Worlds and short descriptions of changes for tables of decisions about a migration. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  INCOMING_NODE_ANNOTATION,
  MIGRATION_COMMITTED_CONDITION,
  INCOMING_MIGRATION_ANNOTATION,
  RECOVERY_ANNOTATION,
} from '#api/names.ts';
import { stateClaimName, stateSuffixOf } from '#api/storage/persistent-state.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aVolume,
  aWorld,
  SOURCE_POD,
  TARGET_POD,
  anAnnouncedWorld,
  ANNOUNCED,
  UID,
} from '#controllers/migration/testing/migration-world.ts';
import type { StoredMigration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import type { Change } from '#runtime/plan.ts';

export const DELETED = { deletionTimestamp: '2030-01-01T00:00:00Z' };
const INCOMING_VOLUME = aVolume({ [INCOMING_NODE_ANNOTATION]: 'node-b', [INCOMING_MIGRATION_ANNOTATION]: UID });
export const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True', message: UID } as const;

/** Describes a change: `patch Pod virt-launcher-db`, with the subresource if there is one. */
export function describeChange(change: Change): string {
  const { type } = change;
  const name = change.do === 'create' ? change.object.metadata.name : change.name.name;
  const part = change.do === 'patch' && change.subresource ? `/${change.subresource}` : '';
  return `${change.do} ${type.kind}${part} ${name}`;
}

export interface Case {
  readonly world: MigrationWorld;
  readonly phase?: string;
  readonly message?: string | RegExp;
  readonly changes?: readonly string[];
}

export const VMI = 'patch VirtualMachineInstance/status db';
export const MAKE_CLAIM = `create PersistentVolumeClaim ${stateClaimName('db', stateSuffixOf(UID))}`;
export const MAKE_POD = `create Pod ${TARGET_POD}`;
export const DROP_POD = `delete Pod ${TARGET_POD}`;
export const RELEASE_TARGET = `patch Pod ${TARGET_POD}`;
export const SOURCE_POD_PATCH = `patch Pod ${SOURCE_POD}`;
export const END = 'patch VirtualMachineInstanceMigration go';

export function otherMigration(name: string, status?: MigrationStatus): StoredMigration {
  const migration = aMigration(status);
  return { ...migration, metadata: { ...migration.metadata, name, uid: `${name}-uid` } };
}

export const incoming = [INCOMING_VOLUME];

/** Tests the changes of each decision, and the phase and message of the new status. */
export function testDecisions(aspect: string, cases: Readonly<Record<string, Case>>): void {
  describe(aspect, () => {
    for (const [sentence, { world, phase, message, changes = [] }] of Object.entries(cases)) {
      test(sentence, () => {
        const plan = decideMigration(world);
        const status = plan.status as MigrationStatus | undefined;
        assert.deepEqual(plan.changes.map(describeChange), changes);
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

/** Builds a world in which the source node is lost and a user has set the recovery annotation. */
export function recoveringWorld(recovery: string, more: Partial<MigrationWorld> = {}): MigrationWorld {
  const migration = recoveringMigration(recovery, [{ type: 'ManualRecoveryRequired', status: 'True' }]);
  return anAnnouncedWorld({ migration, isSourceResponding: false, incoming, ...more });
}

export function recoveringMigration(recovery: string, conditions: MigrationStatus['conditions']): StoredMigration {
  const { status } = anAnnouncedWorld().migration;
  return aMigration({ ...status, conditions }, { annotations: { [RECOVERY_ANNOTATION]: recovery } });
}

export function failedMigration(failureReason: string): StoredMigration {
  const ended = { completed: true, failed: true, failureReason };
  return aMigration({ phase: 'Running', message: failureReason, migrationState: { ...ANNOUNCED, ...ended } });
}

export function unschedulablePod() {
  const message = '0/1 nodes';
  return aPod('target', {
    nodeName: '',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
}

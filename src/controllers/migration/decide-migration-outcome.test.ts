/** Tests the decisions about an announced migration. For M1 to M17 see decide-migration-begin.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIGRATED_REASON, MIGRATION_ABORTED_REASON } from '#api/names.ts';
import { REPLACED_BY_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aStateClaim,
  progress,
  SOURCE_CLAIM,
  SOURCE_POD,
  TARGET_CLAIM,
  anAnnouncedWorld,
  ANNOUNCED,
} from '#controllers/migration/testing/migration-world.ts';
import {
  DELETED,
  committed,
  type Case,
  VMI,
  DROP_POD,
  RELEASE_TARGET,
  SOURCE_POD_PATCH,
  END,
  incoming,
  testDecisions,
  recoveringWorld,
  recoveringMigration,
  failedMigration,
} from '#controllers/migration/testing/migration-cases.ts';

const HAND_OVER_CHANGES = [
  `patch PersistentVolumeClaim ${SOURCE_CLAIM}`,
  `patch PersistentVolumeClaim ${TARGET_CLAIM}`,
  `patch PersistentVolumeClaim ${SOURCE_CLAIM}`,
  'patch PersistentVolume pv-root',
  VMI,
  `delete Pod ${SOURCE_POD}`,
  SOURCE_POD_PATCH,
  RELEASE_TARGET,
];
const FAILED_ON_SOURCE =
  'Cannot migrate the guest of VMI db from node-a to node-b: the stream broke; the guest is on node-a';
const WIND_UP_CHANGES = [VMI, DROP_POD, RELEASE_TARGET, SOURCE_POD_PATCH];

const deciding: Record<string, Case> = {
  'waits for the agents': { world: anAnnouncedWorld(), phase: 'PreparingTarget' },
  'is TargetReady when the target pod runs': {
    world: anAnnouncedWorld({ targetPod: aPod('target', { phase: 'Running' }) }),
    phase: 'TargetReady',
  },
  'is Running while the guest is copied': {
    world: anAnnouncedWorld({ vmiStatus: { migrationProgress: progress('Copying') } }),
    phase: 'Running',
  },
  'M1: hands over when the agent reports that the guest has moved': {
    world: anAnnouncedWorld({ incoming, vmiStatus: { migrationProgress: progress('Committed') } }),
    phase: 'Running',
    changes: HAND_OVER_CHANGES,
  },
  'keeps a source claim that is a disk of a VM': {
    world: anAnnouncedWorld({
      incoming: [],
      sourceClaim: aStateClaim('source', { annotations: { [REPLACED_BY_ANNOTATION]: 'another' } }),
      otherVmOf: () => 'ledger',
      vmiStatus: { migrationProgress: progress('Committed') },
    }),
    phase: 'Running',
    changes: HAND_OVER_CHANGES.slice(1).filter((change) => !change.includes('PersistentVolume pv')),
  },
  'deletes the source claim that it has marked as replaced': {
    world: anAnnouncedWorld({
      sourcePod: undefined,
      sourceClaim: aStateClaim('source', {
        labels: {},
        annotations: { [REPLACED_BY_ANNOTATION]: 'target-claim-uid' },
      }),
      targetPod: aPod('target', { conditions: [committed] }),
      vmi: undefined,
    }),
    phase: 'Running',
    changes: [
      `patch PersistentVolumeClaim ${TARGET_CLAIM}`,
      RELEASE_TARGET,
      `delete PersistentVolumeClaim ${SOURCE_CLAIM}`,
    ],
  },
  'M11: hands over when the target pod reports that it has the guest': {
    world: anAnnouncedWorld({
      incoming,
      targetPod: aPod('target', { conditions: [committed] }),
      isSourceResponding: false,
    }),
    phase: 'Running',
    changes: HAND_OVER_CHANGES,
  },
  'M11: hands over when the source pod ended because of the migration': {
    world: anAnnouncedWorld({
      incoming,
      sourcePod: aPod(
        'source',
        { phase: 'Succeeded', reason: MIGRATED_REASON },
        { finalizers: ['selfsame.io/migration'] },
      ),
    }),
    phase: 'Running',
    changes: HAND_OVER_CHANGES,
  },
  'ignores what a pod reported about an earlier migration': {
    world: anAnnouncedWorld({ sourcePod: aPod('source', { conditions: [{ ...committed, message: 'earlier' }] }) }),
    phase: 'PreparingTarget',
  },
  'M5: does not repeat steps that are done': {
    world: anAnnouncedWorld({
      migration: aMigration({ phase: 'Running', migrationState: { ...ANNOUNCED, completed: true } }),
      vmiStatus: { migrationState: { ...ANNOUNCED, completed: true } },
      sourcePod: undefined,
      sourceClaim: undefined,
      targetPod: aPod('target', {}, { finalizers: undefined }),
      targetClaim: aStateClaim('target', {
        labels: { 'persistent-state-for': 'db' },
        annotations: { 'persistent-state-for-db': 'true' },
      }),
    }),
    phase: 'Succeeded',
    changes: [END],
  },
  'M6: changes nothing if the target claim holds the state of another VM': {
    world: anAnnouncedWorld({
      targetClaim: aStateClaim('target', { labels: { 'persistent-state-for': 'web' } }),
      vmiStatus: { migrationProgress: progress('Committed') },
    }),
    phase: 'Running',
    message: `PersistentVolumeClaim ${TARGET_CLAIM} already holds the state of VM web`,
  },
  'M7: reports missing claim names': {
    world: anAnnouncedWorld({
      migration: aMigration({
        phase: 'Running',
        migrationState: { ...ANNOUNCED, completed: true, sourcePersistentStatePVCName: undefined },
      }),
    }),
    phase: 'Running',
    message: 'missing source and/or target PVC name(s)',
  },
  'M2: winds up when the agent reports a failure': {
    world: anAnnouncedWorld({ vmiStatus: { migrationProgress: progress('Failed', 'the stream broke') } }),
    message: 'the stream broke',
    changes: WIND_UP_CHANGES,
  },
  'M10: winds up when the guest ended on the source node': {
    world: anAnnouncedWorld({
      sourcePod: aPod('source', { phase: 'Succeeded' }, { finalizers: ['selfsame.io/migration'] }),
    }),
    message: 'the guest ended on the source node',
    changes: WIND_UP_CHANGES,
  },
  'winds up when the target did not receive the guest': {
    world: anAnnouncedWorld({ targetPod: aPod('target', { phase: 'Failed', reason: MIGRATION_ABORTED_REASON }) }),
    message: 'the target node did not receive the guest',
    changes: WIND_UP_CHANGES,
  },
  'M2: releases volumes and claims after the target pod is gone': {
    world: anAnnouncedWorld({
      incoming,
      migration: failedMigration('the stream broke'),
      vmiStatus: { migrationState: failedMigration('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
    }),
    message: 'the stream broke',
    changes: ['patch PersistentVolume pv-root', `patch PersistentVolumeClaim ${TARGET_CLAIM}`],
  },
  'M2: is Failed when everything is wound up': {
    world: anAnnouncedWorld({
      migration: failedMigration('the stream broke'),
      vmiStatus: { migrationState: failedMigration('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
      targetClaim: undefined,
    }),
    phase: 'Failed',
    message: FAILED_ON_SOURCE,
    changes: [END],
  },
  'keeps a target claim that a VM has adopted': {
    world: anAnnouncedWorld({
      migration: failedMigration('the stream broke'),
      vmiStatus: { migrationState: failedMigration('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
      targetClaim: aStateClaim('target', { labels: { 'persistent-state-for': 'db' } }),
    }),
    phase: 'Failed',
    message: FAILED_ON_SOURCE,
    changes: [END],
  },
  'asks the agents to abort a cancelled migration': {
    world: anAnnouncedWorld({}, DELETED),
    phase: 'PreparingTarget',
    message: 'the migration is being cancelled',
    changes: [VMI],
  },
  'M10: reports an unknown outcome if the source node does not respond': {
    world: anAnnouncedWorld({ isSourceResponding: false }),
    phase: 'PreparingTarget',
    message: /unknown whether the guest is on node node-a or has moved to node node-b: node node-a does not respond/,
  },
  'M10: learns nothing from a pod that was garbage-collected with its node': {
    world: anAnnouncedWorld({
      isSourceResponding: false,
      sourcePod: aPod('source', {
        phase: 'Failed',
        conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }],
      }),
    }),
    phase: 'PreparingTarget',
    message: /node node-a does not respond/,
  },
  'hands over if a user recovers the guest on the target': {
    world: recoveringWorld('target'),
    phase: 'Running',
    changes: HAND_OVER_CHANGES,
  },
  'winds up if a user recovers the guest on the source': {
    world: recoveringWorld('source'),
    message: 'the annotation selfsame.io/recovery decided that the guest stays on node node-a',
    changes: WIND_UP_CHANGES,
  },
  'ignores a recovery while the source node responds': {
    world: recoveringWorld('target', { isSourceResponding: true }),
    phase: 'PreparingTarget',
  },
  'ignores a recovery that was set before it was required': {
    world: { ...recoveringWorld('target'), migration: recoveringMigration('target', []) },
    phase: 'PreparingTarget',
    message: /node node-a does not respond/,
  },
  'refuses a recovery on a target node that does not respond': {
    world: recoveringWorld('target', { isTargetResponding: false }),
    phase: 'PreparingTarget',
    message:
      /node node-a does not respond.*Cannot recover the guest on the target node: node node-b does not respond either$/,
  },
  'refuses a recovery on a target without its pod': {
    world: recoveringWorld('target', { targetPod: undefined }),
    phase: 'PreparingTarget',
    message: /Cannot recover the guest on the target node: the target pod .* has ended or does not exist$/,
  },
  'waits for the agents if the instance was removed by force': {
    world: anAnnouncedWorld({ vmi: undefined }),
    phase: 'PreparingTarget',
  },
  'hands over the state if the instance was removed by force': {
    world: anAnnouncedWorld({ vmi: undefined, targetPod: aPod('target', { conditions: [committed] }) }),
    phase: 'Running',
    changes: HAND_OVER_CHANGES.filter((change) => change !== VMI && !change.includes('PersistentVolume pv')),
  },
};

testDecisions('an announced migration', deciding);

test('the agents are asked once to abort a cancelled migration, and its condition reports it', () => {
  const aborting = { ...ANNOUNCED, abortRequested: true, abortStatus: 'Aborting' as const };
  const first = decideMigration(anAnnouncedWorld({}, DELETED)).status as MigrationStatus;
  assert.deepEqual(first.migrationState, aborting);
  assert.equal(first.conditions?.[0]?.type, 'migrationAbortRequested');
  const migration = aMigration(first, DELETED);
  assert.deepEqual(
    decideMigration(anAnnouncedWorld({ migration, vmiStatus: { migrationState: aborting } })).changes,
    [],
  );
});

test('ManualRecoveryRequired is True until the node is back', () => {
  const lost = decideMigration(anAnnouncedWorld({ isSourceResponding: false })).status as MigrationStatus;
  assert.deepEqual([lost.conditions?.[0]?.type, lost.conditions?.[0]?.status], ['ManualRecoveryRequired', 'True']);
  const back = decideMigration(anAnnouncedWorld({ migration: aMigration(lost) })).status as MigrationStatus;
  assert.equal(back.conditions?.[0]?.status, 'False');
});

test('the Event of a recovery says what the user must make sure of', () => {
  const notes = (recovery: string) =>
    (decideMigration(recoveringWorld(recovery)).events ?? []).map(({ type, reason, message }) => [
      type,
      reason,
      message,
    ]);
  const decided = 'The annotation selfsame.io/recovery decided that the guest';
  const moved = `${decided} has moved to node node-b. Make sure that node node-a does not run it any more`;
  const stays = `${decided} stays on node node-a. Make sure that node node-b does not run it`;
  assert.deepEqual(notes('target'), [['Warning', 'MigrationRecovered', moved]]);
  assert.deepEqual(notes('source'), [['Warning', 'MigrationRecovered', stays]]);
});

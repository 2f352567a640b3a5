/** What is done about a migration once its agents know of it, until it is decided and wound up. For M1 to M17 see decide-migration-begin.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIGRATED_REASON, MIGRATION_ABORTED_REASON } from '#api/names.ts';
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
  told,
  TOLD,
} from '#controllers/migration/migration-world.fixture.ts';
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
  proveDecisions,
  silent,
  recovering,
  failing,
} from '#controllers/migration/testing/migration-cases.ts';

const DONE = [
  `patch PersistentVolumeClaim ${TARGET_CLAIM}`,
  `patch PersistentVolumeClaim ${SOURCE_CLAIM}`,
  'patch PersistentVolume pv-root',
  VMI,
  `delete Pod ${SOURCE_POD}`,
  SOURCE_POD_PATCH,
  RELEASE_TARGET,
  `delete PersistentVolumeClaim ${SOURCE_CLAIM}`,
];
const UNDONE = [VMI, DROP_POD, RELEASE_TARGET, SOURCE_POD_PATCH];

const deciding: Record<string, Case> = {
  'the agents are waited for': { world: told(), phase: 'PreparingTarget' },
  'the target waits': { world: told({ targetPod: aPod('target', { phase: 'Running' }) }), phase: 'TargetReady' },
  'the guest goes': { world: told({ told: { migrationProgress: progress('Copying') } }), phase: 'Running' },
  'M1: the guest has gone': {
    world: told({ incoming, told: { migrationProgress: progress('Committed') } }),
    phase: 'Running',
    does: DONE,
  },
  'M11: the target pod says so': {
    world: told({ incoming, targetPod: aPod('target', { conditions: [committed] }), sourceAnswers: false }),
    phase: 'Running',
    does: DONE,
  },
  'M11: the source pod has ended because of it': {
    world: told({
      incoming,
      sourcePod: aPod(
        'source',
        { phase: 'Succeeded', reason: MIGRATED_REASON },
        { finalizers: ['selfsame.io/migration'] },
      ),
    }),
    phase: 'Running',
    does: DONE,
  },
  'what a pod said of an earlier migration does not count': {
    world: told({ sourcePod: aPod('source', { conditions: [{ ...committed, message: 'earlier' }] }) }),
    phase: 'PreparingTarget',
  },
  'M5: what is done is not done again': {
    world: told({
      migration: aMigration({ phase: 'Running', migrationState: { ...TOLD, completed: true } }),
      told: { migrationState: { ...TOLD, completed: true } },
      sourcePod: undefined,
      sourceClaim: undefined,
      targetPod: aPod('target', {}, { finalizers: undefined }),
      targetClaim: aStateClaim('target', {
        labels: { 'persistent-state-for': 'db' },
        annotations: { 'persistent-state-for-db': 'true' },
      }),
    }),
    phase: 'Succeeded',
    does: [END],
  },
  'M6: a claim that is another VM’s is left alone, and so is everything': {
    world: told({
      targetClaim: aStateClaim('target', { labels: { 'persistent-state-for': 'web' } }),
      told: { migrationProgress: progress('Committed') },
    }),
    phase: 'Running',
    message: `the claim ${TARGET_CLAIM} already holds the state of the VM web`,
  },
  'M7: missing names': {
    world: told({
      migration: aMigration({
        phase: 'Running',
        migrationState: { ...TOLD, completed: true, sourcePersistentStatePVCName: undefined },
      }),
    }),
    phase: 'Running',
    message: 'missing source and/or target PVC name(s)',
  },
  'M2: the agent gave it up': {
    world: told({ told: { migrationProgress: progress('Failed', 'the stream broke') } }),
    message: 'the stream broke',
    does: UNDONE,
  },
  'M10: the guest has ended at its source': {
    world: told({ sourcePod: aPod('source', { phase: 'Succeeded' }, { finalizers: ['selfsame.io/migration'] }) }),
    message: 'the guest has ended at its source node',
    does: UNDONE,
  },
  'nothing came to the target': {
    world: told({ targetPod: aPod('target', { phase: 'Failed', reason: MIGRATION_ABORTED_REASON }) }),
    message: 'the guest did not come to the target node',
    does: UNDONE,
  },
  'M2: volumes and claims come last, when nobody uses them at the target': {
    world: told({
      incoming,
      migration: failing('the stream broke'),
      told: { migrationState: failing('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
    }),
    message: 'the stream broke',
    does: ['patch PersistentVolume pv-root', `delete PersistentVolumeClaim ${TARGET_CLAIM}`],
  },
  'M2: then it has failed': {
    world: told({
      migration: failing('the stream broke'),
      told: { migrationState: failing('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
      targetClaim: undefined,
    }),
    phase: 'Failed',
    message: 'the stream broke',
    does: [END],
  },
  'a claim that somebody took for the state stays': {
    world: told({
      migration: failing('the stream broke'),
      told: { migrationState: failing('the stream broke').status?.migrationState },
      sourcePod: aPod('source'),
      targetPod: undefined,
      targetClaim: aStateClaim('target', { labels: { 'persistent-state-for': 'db' } }),
    }),
    phase: 'Failed',
    message: 'the stream broke',
    does: [END],
  },
  'a cancelled one asks the agents to give it up': {
    world: told({}, DELETED),
    phase: 'PreparingTarget',
    message: 'the migration is being cancelled',
    does: [VMI],
  },
  'M10: nobody is left who knows': {
    world: told({ sourceAnswers: false }),
    phase: 'PreparingTarget',
    message: /not known whether the guest is on node node-a or went to node node-b: node node-a does not answer/,
  },
  'M10: a pod that was taken off a node that is gone has not said anything': {
    world: told({
      sourceAnswers: false,
      sourcePod: aPod('source', {
        phase: 'Failed',
        conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }],
      }),
    }),
    phase: 'PreparingTarget',
    message: /node node-a does not answer/,
  },
  'people decide, when nobody is left who knows: it went': {
    world: silent('target'),
    phase: 'Running',
    does: DONE,
  },
  'people decide, when nobody is left who knows: it stays': {
    world: silent('source'),
    message: 'it was decided by the annotation selfsame.io/recovery that the guest stays on node node-a',
    does: UNDONE,
  },
  'people decide nothing as long as a node can': {
    world: silent('target', { sourceAnswers: true }),
    phase: 'PreparingTarget',
  },
  'a decision is not heeded before it was asked for': {
    world: { ...silent('target'), migration: recovering('target', []) },
    phase: 'PreparingTarget',
    message: /node node-a does not answer/,
  },
  'a guest cannot be said to be where nobody answers either': {
    world: silent('target', { targetAnswers: false }),
    phase: 'PreparingTarget',
    message:
      /node node-a does not answer.*It cannot be decided that the guest went: node node-b does not answer either$/,
  },
  'nor where its pod is gone': {
    world: silent('target', { targetPod: undefined }),
    phase: 'PreparingTarget',
    message: /It cannot be decided that the guest went: the pod .* that was to get it is gone$/,
  },
  'an instance that was removed by force does not decide': {
    world: told({ vmi: undefined }),
    phase: 'PreparingTarget',
  },
  'nor does it keep the state from going over': {
    world: told({ vmi: undefined, targetPod: aPod('target', { conditions: [committed] }) }),
    phase: 'Running',
    does: DONE.filter((change) => change !== VMI && !change.includes('PersistentVolume pv')),
  },
};

proveDecisions('deciding', deciding);

test('a cancelled one is asked for once, and says so', () => {
  const asked = { ...TOLD, abortRequested: true, abortStatus: 'Aborting' as const };
  const first = decideMigration(told({}, DELETED)).status as MigrationStatus;
  assert.deepEqual(first.migrationState, asked);
  assert.equal(first.conditions?.[0]?.type, 'migrationAbortRequested');
  const migration = aMigration(first, DELETED);
  assert.deepEqual(decideMigration(told({ migration, told: { migrationState: asked } })).changes, []);
});

test('ManualRecoveryRequired comes, and goes when the node is back', () => {
  const lost = decideMigration(told({ sourceAnswers: false })).status as MigrationStatus;
  assert.deepEqual([lost.conditions?.[0]?.type, lost.conditions?.[0]?.status], ['ManualRecoveryRequired', 'True']);
  const back = decideMigration(told({ migration: aMigration(lost) })).status as MigrationStatus;
  assert.equal(back.conditions?.[0]?.status, 'False');
});

test('people who decide are told what they have to make sure of', () => {
  const notes = (recovery: string) =>
    (decideMigration(silent(recovery)).events ?? []).map(({ type, reason, message }) => [type, reason, message]);
  const told = 'It was decided by the annotation selfsame.io/recovery that the guest';
  const went = `${told} went to node node-b. Make sure that node node-a does not run it any more`;
  const stays = `${told} stays on node node-a. Make sure that node node-b does not run it`;
  assert.deepEqual(notes('target'), [['Warning', 'MigrationRecovered', went]]);
  assert.deepEqual(notes('source'), [['Warning', 'MigrationRecovered', stays]]);
});

/**
 * What is done about a migration. M1 to M17 are rows of facts/kubevirt.md 7.3. Where they are otherwise here:
 *
 *   M3, M4    ReadWriteMany claims are used by both sides; the seed wants a new target claim always, so M1 and M2 hold
 *   M9        there are no migrations between clusters
 *   M10, M11  a Job reads the source's record; here the agents say it, and while none can, it waits (design.md)
 *   M12       a VMI waits: controllers/vmi
 *   M13       needs guests: test/e2e
 *   M15-M17   snapshots and restores: controllers/snapshot, controllers/restore (M16: allowed, the state is copied)
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  INCOMING_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  MIGRATED_REASON,
  MIGRATION_ABORTED_REASON,
  MIGRATION_COMMITTED_CONDITION,
  MIGRATION_FINALIZER,
  INCOMING_MIGRATION_ANNOTATION,
  RECOVERY_ANNOTATION,
} from '#api/names.ts';
import { stateClaimName, stateSuffixOf } from '#api/persistent-state.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aStateClaim,
  aVmi,
  aVolume,
  aWorld,
  begun,
  NOW_MS,
  progress,
  SOURCE_CLAIM,
  SOURCE_POD,
  TARGET_CLAIM,
  TARGET_POD,
  told,
  TOLD,
  UID,
} from '#controllers/migration/migration-world.fixture.ts';
import type { Migration, MigrationWorld } from '#controllers/migration/migration-world.ts';
import { ApiError } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change } from '#runtime/plan.ts';

const DELETED = { deletionTimestamp: '2030-01-01T00:00:00Z' };
const ANNOUNCED = aVolume({ [INCOMING_NODE_ANNOTATION]: 'node-b', [INCOMING_MIGRATION_ANNOTATION]: UID });
const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True', message: UID } as const;

/** `patch Pod virt-launcher-db`; statuses are told apart. */
function brief(change: Change): string {
  const { type } = change;
  const name = change.do === 'create' ? change.object.metadata.name : change.name.name;
  const part = change.do === 'patch' && change.subresource ? `/${change.subresource}` : '';
  return `${change.do} ${type.kind}${part} ${name}`;
}

interface Case {
  readonly world: MigrationWorld;
  readonly phase?: string;
  readonly message?: string | RegExp;
  readonly does?: readonly string[];
}

const VMI = 'patch VirtualMachineInstance/status db';
const MAKE_CLAIM = `create PersistentVolumeClaim ${stateClaimName('db', stateSuffixOf(UID))}`;
const MAKE_POD = `create Pod ${TARGET_POD}`;
const DROP_POD = `delete Pod ${TARGET_POD}`;
const RELEASE_TARGET = `patch Pod ${TARGET_POD}`;
const SOURCE_POD_PATCH = `patch Pod ${SOURCE_POD}`;
const END = 'patch VirtualMachineInstanceMigration go';

function older(name: string, status?: MigrationStatus): Migration {
  const migration = aMigration(status);
  return { ...migration, metadata: { ...migration.metadata, name, uid: `${name}-uid` } };
}

const beginning: Record<string, Case> = {
  'claim and pod of the target are made at once': {
    world: aWorld(),
    phase: 'Scheduling',
    does: [MAKE_CLAIM, MAKE_POD],
  },
  'a guest without persistent state needs no claim': {
    world: aWorld({ vmi: aVmi({}, { domain: {}, volumes: [] }), claims: new Map(), sourceClaim: undefined }),
    phase: 'Scheduling',
    does: [MAKE_POD],
  },
  'what is there already is not made again': {
    world: begun({ targetPod: undefined }),
    phase: 'Scheduling',
    does: [MAKE_POD],
  },
  'a finalizer that is missing comes first': {
    world: aWorld({ migration: aMigration(undefined, { finalizers: undefined }) }),
    does: [END],
  },
  'a VMI that starts is waited for': {
    world: aWorld({ vmi: aVmi({ phase: 'Scheduling' }) }),
    phase: 'Pending',
    message: 'the VMI is Scheduling, and not Running yet',
  },
  'M8: no claim of the state is known': {
    world: aWorld({ sourceClaim: undefined }),
    phase: 'Pending',
    message: 'no backend-storage PVC found in VMI volume status',
  },
  'a snapshot of the VM is waited for': {
    world: aWorld({ vm: { status: { snapshotInProgress: 'nightly' } } as MigrationWorld['vm'] }),
    phase: 'Pending',
    message: 'the snapshot nightly of the VM is being taken',
  },
  'a restore of the VM is waited for': {
    world: aWorld({ vm: { status: { restoreInProgress: 'back' } } as MigrationWorld['vm'] }),
    phase: 'Pending',
    message: 'the restore back of the VM goes on',
  },
  'a device that comes or goes is waited for': {
    world: aWorld({ vmi: aVmi({ hotplug: [{ device: 'disk-b', phase: 'Plugging' }] }) }),
    phase: 'Pending',
    message: 'the device disk-b of the VMI is plugging',
  },
  'a disk that another instance uses, too, cannot go away': {
    world: aWorld({ otherUserOf: (claimName) => (claimName === 'db-root' ? 'reader' : undefined) }),
    phase: 'Pending',
    message: 'volume root is used by the VMI reader, too',
  },
  'the limit of the cluster holds': {
    world: aWorld({ active: { inCluster: 5, fromNode: 0 } }),
    phase: 'Pending',
    message: /parallelMigrationsPerCluster: 5/,
  },
  'the limit of the node holds': {
    world: aWorld({ active: { inCluster: 4, fromNode: 2 } }),
    phase: 'Pending',
    message: /leave node node-a .*parallelOutboundMigrationsPerNode: 2/,
  },
  'what an earlier migration left of a disk must be gone': {
    world: aWorld({ claims: withVolume({ [LEFTOVER_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Pending',
    message: 'volume root waits for node node-c to remove the copy that it has left',
  },
  'a disk does not go two ways': {
    world: aWorld({ claims: withVolume({ [INCOMING_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Pending',
    message: 'volume root is on its way to node node-c by another migration',
  },
  'a migration that nobody winds up is not forgotten': {
    world: aWorld({ vmi: aVmi({ migrationState: { ...TOLD, migrationUid: 'lost' } }) }),
    phase: 'Pending',
    message: 'the migration lost of the VMI has not come to its end',
  },
  'unless its agent gave it up': {
    world: aWorld({
      vmi: aVmi({
        migrationState: { ...TOLD, migrationUid: 'lost' },
        migrationProgress: { migrationUid: 'lost', phase: 'Failed' },
      }),
    }),
    phase: 'Scheduling',
    does: [MAKE_CLAIM, MAKE_POD],
  },
};

const refused: Record<string, Case> = {
  'a VMI that is not there': { world: aWorld({ vmi: undefined }), message: 'VMI db does not exist' },
  'a VMI that has ended': {
    world: aWorld({ vmi: aVmi({ phase: 'Succeeded' }) }),
    message: 'Cannot migrate VMI in finalized state.',
  },
  'a VMI that goes': { world: aWorld({ vmi: aVmi({}, {}, DELETED) }), message: 'the VMI is being deleted' },
  'a VMI that cannot': {
    world: aWorld({
      vmi: aVmi({ conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'HostDevice', message: 'no' }] }),
    }),
    message: 'Cannot migrate VMI, Reason: HostDevice, Message: no',
  },
  'M14: the second migration of a VMI': {
    world: aWorld({ others: [older('first')] }),
    message:
      'in-flight migration detected. Active migration job (first-uid) is currently already in progress for VMI db.',
  },
  'M14: one that was cancelled before it began': {
    world: aWorld({ migration: aMigration(undefined, DELETED) }),
    message: 'the migration was cancelled',
  },
};

const preparing: Record<string, Case> = {
  'a target pod without a node is waited for': { world: begun(), phase: 'Scheduling' },
  'on a node, all is said in one turn': {
    world: begun({ targetPod: aPod('target') }),
    phase: 'Scheduled',
    does: [SOURCE_POD_PATCH, 'patch PersistentVolume pv-root', VMI],
  },
  'a snapshot that was begun meanwhile comes first': {
    world: begun({
      targetPod: aPod('target'),
      vm: { status: { snapshotInProgress: 'nightly' } } as MigrationWorld['vm'],
    }),
    phase: 'Scheduled',
    message: 'the snapshot nightly of the VM is being taken',
  },
  'so does a device that is plugged in meanwhile': {
    world: begun({
      targetPod: aPod('target'),
      vmi: aVmi({ hotplug: [{ device: 'disk-b', phase: 'Plugging' }] }),
    }),
    phase: 'Scheduled',
    message: 'the device disk-b of the VMI is plugging',
  },
  'a disk that is busy by then is waited for': {
    world: begun({ targetPod: aPod('target'), claims: withVolume({ [LEFTOVER_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Scheduled',
    message: /node node-c/,
  },
  'M14: cancelled before the agents know': {
    world: begun({}, DELETED),
    phase: 'Scheduling',
    message: 'the migration was cancelled',
    does: [DROP_POD, RELEASE_TARGET],
  },
  'M14: then its claim goes': {
    world: begun({ targetPod: undefined, migration: failing('the migration was cancelled') }),
    message: 'the migration was cancelled',
    does: [`delete PersistentVolumeClaim ${TARGET_CLAIM}`],
  },
  'a target pod that no node takes yet': {
    world: begun({ targetPod: unschedulable() }),
    phase: 'Scheduling',
    message: 'no node takes the target pod yet: 0/1 nodes',
  },
  'a target pod that no node takes': {
    world: begun({ targetPod: unschedulable(), now: NOW_MS + 5 * 60_000 }),
    message: 'no node takes the target pod, for 5 minutes now: 0/1 nodes',
    does: [DROP_POD, RELEASE_TARGET],
  },
  'one that takes 15 minutes': {
    world: begun({ now: NOW_MS + 15 * 60_000 }),
    message: 'the target pod was not ready within 15 minutes',
    does: [DROP_POD, RELEASE_TARGET],
  },
  'a target pod that has ended': {
    world: begun({ targetPod: aPod('target', { phase: 'Failed', reason: 'Evicted' }) }),
    message: `the target pod ${TARGET_POD} has ended: Evicted`,
    does: [DROP_POD, RELEASE_TARGET],
  },
  'a source pod that goes': {
    world: begun({ sourcePod: aPod('source', {}, DELETED) }),
    message: `the virt-launcher pod ${SOURCE_POD} of the guest comes to its end`,
    does: [DROP_POD, RELEASE_TARGET],
  },
};

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
const incoming = [ANNOUNCED];

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

for (const [aspect, cases] of Object.entries({ beginning, preparing, deciding })) {
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

describe('refused', () => {
  for (const [sentence, { world, message }] of Object.entries(refused)) {
    test(sentence, () => {
      const { status, events, changes } = decideMigration(world);
      const { phase, message: said, migrationState } = status as MigrationStatus;
      assert.deepEqual([phase, said, migrationState?.failed], ['Failed', message, true]);
      assert.deepEqual(changes.map(brief), [END]);
      assert.equal(events?.[0]?.reason, 'FailedMigration');
    });
  }
});

test('phases have the time at which they came, also those that nobody saw', () => {
  const world = begun({ targetPod: aPod('target'), now: NOW_MS + 1000 });
  const { phaseTransitionTimestamps } = decideMigration(world).status as MigrationStatus;
  assert.deepEqual(phaseTransitionTimestamps?.at(-1), {
    phase: 'Scheduled',
    phaseTransitionTimestamp: timestamp(NOW_MS + 1000),
  });
  const first = decideMigration(aWorld()).status as MigrationStatus;
  assert.deepEqual(
    first.phaseTransitionTimestamps?.map(({ phase }) => phase),
    ['Pending', 'Scheduling'],
  );
});

test('what the agents get is what the migration says, and nothing of the one before', () => {
  const before = { ...TOLD, migrationUid: 'before', completed: true, endTimestamp: timestamp(NOW_MS) };
  const vmi = aVmi({ migrationState: { ...before, sourcePod: 'x', targetPod: SOURCE_POD } });
  const plan = decideMigration(begun({ vmi, targetPod: aPod('target') }));
  const last = plan.changes.at(-1);
  assert(last?.do === 'patch');
  assert.deepEqual((last.patch.body as { value: unknown }[])[1]?.value, TOLD);
  assert.deepEqual((plan.status as MigrationStatus).migrationState, TOLD);
});

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

test('of the finished migrations of an instance the five newest stay', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const finished = names.map((name, i) => {
    const migration = older(name, { phase: 'Succeeded' });
    return { ...migration, metadata: { ...migration.metadata, creationTimestamp: timestamp(NOW_MS + i * 1000) } };
  });
  const plan = decideMigration(aWorld({ migration: finished[6]!, finished }));
  assert.deepEqual(plan.changes.map(brief), [
    'patch VirtualMachineInstanceMigration g',
    'delete VirtualMachineInstanceMigration b',
    'delete VirtualMachineInstanceMigration a',
  ]);
  assert.equal(finished[6]?.metadata.finalizers?.[0], MIGRATION_FINALIZER);
});

test('what could not be made is told', () => {
  const world = begun({ targetPod: undefined });
  const [change] = decideMigration(world).changes;
  assert(change !== undefined);
  const error = new ApiError(403, 'Forbidden', 'exceeded quota: small');
  const status = concludeMigration(world, [{ change, error }]) as MigrationStatus;
  assert.deepEqual(
    [status.phase, status.message],
    ['Scheduling', 'failed to create the target pod: exceeded quota: small'],
  );
  assert.equal(concludeMigration(world, []), undefined);
});

function withVolume(annotations: Record<string, string>): MigrationWorld['claims'] {
  const [[name, view] = assert.fail()] = [...aWorld().claims];
  return new Map([[name, { ...view, volume: aVolume(annotations) }]]);
}

/** The node of the guest is lost, which is known; people have said where it is. */
function silent(recovery: string, more: Partial<MigrationWorld> = {}): MigrationWorld {
  const migration = recovering(recovery, [{ type: 'ManualRecoveryRequired', status: 'True' }]);
  return told({ migration, sourceAnswers: false, incoming, ...more });
}

function recovering(recovery: string, conditions: MigrationStatus['conditions']): Migration {
  const { status } = told().migration;
  return aMigration({ ...status, conditions }, { annotations: { [RECOVERY_ANNOTATION]: recovery } });
}

function failing(failureReason: string): Migration {
  const ended = { completed: true, failed: true, failureReason };
  return aMigration({ phase: 'Running', message: failureReason, migrationState: { ...TOLD, ...ended } });
}

function unschedulable() {
  const message = '0/1 nodes';
  return aPod('target', {
    nodeName: '',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
}

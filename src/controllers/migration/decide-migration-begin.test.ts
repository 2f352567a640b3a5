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
import { INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION, MIGRATION_FINALIZER } from '#api/names.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aVmi,
  aWorld,
  begun,
  NOW_MS,
  SOURCE_POD,
  TARGET_CLAIM,
  TARGET_POD,
  TOLD,
} from '#controllers/migration/migration-world.fixture.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import {
  DELETED,
  brief,
  type Case,
  VMI,
  MAKE_CLAIM,
  MAKE_POD,
  DROP_POD,
  RELEASE_TARGET,
  SOURCE_POD_PATCH,
  END,
  older,
  proveDecisions,
  withVolume,
  failing,
  unschedulable,
} from '#controllers/migration/testing/migration-cases.ts';
import { ApiError } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';

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

proveDecisions('beginning', beginning);
proveDecisions('preparing', preparing);

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

/**
 * Tests the decisions about a migration before it is announced. M1 to M17 are the
 * cases of KubeVirt's own tests. Intended differences:
 *
 *   M3, M4    upstream, both sides use a ReadWriteMany claim; seed 001 requires a new target claim, so M1 and M2 apply
 *   M9        there are no migrations between clusters
 *   M10, M11  upstream, a Job reads the source's record; here the agents report it, and the migration waits for them
 *   M12       a VMI that waits: controllers/vmi
 *   M13       needs guests: test/e2e
 *   M15-M17   snapshots and restores: controllers/snapshot, controllers/restore (M16: allowed, the state is copied)
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION, MIGRATION_FINALIZER } from '#api/names.ts';
import { REPLACED_BY_ANNOTATION } from '#api/storage/persistent-state.ts';
import type { MigrationStatus } from '#api/virtual-machine-instance-migration/kind.ts';
import { concludeMigration } from '#controllers/migration/begin.ts';
import { decideMigration } from '#controllers/migration/decide-migration.ts';
import {
  aMigration,
  aPod,
  aStateClaim,
  aVmi,
  aWorld,
  aBegunWorld,
  NOW_MS,
  SOURCE_POD,
  TARGET_CLAIM,
  TARGET_POD,
  VM_UID,
  ANNOUNCED,
} from '#controllers/migration/testing/migration-world.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import {
  DELETED,
  describeChange,
  type Case,
  VMI,
  MAKE_CLAIM,
  MAKE_POD,
  DROP_POD,
  RELEASE_TARGET,
  SOURCE_POD_PATCH,
  END,
  otherMigration,
  testDecisions,
  withVolume,
  failedMigration,
  unschedulablePod,
} from '#controllers/migration/testing/migration-cases.ts';
import { ApiError } from '#kube/api-error.ts';
import { timestamp } from '#lib/clock.ts';

const beginning: Record<string, Case> = {
  'creates the claim and the pod of the target at once': {
    world: aWorld(),
    phase: 'Scheduling',
    changes: [MAKE_CLAIM, MAKE_POD],
  },
  'creates no claim for a guest without persistent state': {
    world: aWorld({ vmi: aVmi({}, { domain: {}, volumes: [] }), claims: new Map(), sourceClaim: undefined }),
    phase: 'Scheduling',
    changes: [MAKE_POD],
  },
  'creates only the objects that are missing': {
    world: aBegunWorld({ targetPod: undefined }),
    phase: 'Scheduling',
    changes: [MAKE_POD],
  },
  'adds a missing finalizer first': {
    world: aWorld({ migration: aMigration(undefined, { finalizers: undefined }) }),
    changes: [END],
  },
  'waits for a VMI that is starting': {
    world: aWorld({ vmi: aVmi({ phase: 'Scheduling' }) }),
    phase: 'Pending',
    message: 'the VMI is Scheduling; it must be Running',
  },
  'M8: waits for the claim of the persistent state': {
    world: aWorld({ sourceClaim: undefined }),
    phase: 'Pending',
    message: 'no backend-storage PVC found in VMI volume status',
  },
  'waits for a snapshot of the VM': {
    world: aWorld({ vm: { status: { snapshotInProgress: 'nightly' } } as MigrationWorld['vm'] }),
    phase: 'Pending',
    message: 'snapshot nightly of the VM is in progress',
  },
  'waits for a restore of the VM': {
    world: aWorld({ vm: { status: { restoreInProgress: 'back' } } as MigrationWorld['vm'] }),
    phase: 'Pending',
    message: 'restore back of the VM is in progress',
  },
  'waits for a device that is being plugged': {
    world: aWorld({ vmi: aVmi({ hotplug: [{ device: 'disk-b', phase: 'Plugging' }] }) }),
    phase: 'Pending',
    message: 'device disk-b of the VMI is plugging',
  },
  'waits while another instance uses a moving disk': {
    world: aWorld({ otherUserOf: (claimName) => (claimName === 'db-root' ? 'reader' : undefined) }),
    phase: 'Pending',
    message: 'volume root is also used by VMI reader',
  },
  'respects the limit of the cluster': {
    world: aWorld({ active: { inCluster: 5, fromNode: 0 } }),
    phase: 'Pending',
    message: /parallelMigrationsPerCluster: 5/,
  },
  'respects the limit of the node': {
    world: aWorld({ active: { inCluster: 4, fromNode: 2 } }),
    phase: 'Pending',
    message: /node node-a .*parallelOutboundMigrationsPerNode: 2/,
  },
  'waits for the removal of the leftover of an earlier migration': {
    world: aWorld({ claims: withVolume({ [LEFTOVER_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Pending',
    message: 'volume root waits for node node-c to remove a leftover copy',
  },
  'waits while another migration moves the same disk': {
    world: aWorld({ claims: withVolume({ [INCOMING_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Pending',
    message: 'another migration is moving volume root to node node-c',
  },
  'waits for a migration whose object was removed by force': {
    world: aWorld({ vmi: aVmi({ migrationState: { ...ANNOUNCED, migrationUid: 'lost' } }) }),
    phase: 'Pending',
    message: 'migration lost of the VMI has not ended',
  },
  'begins when the agent reports that such a migration has failed': {
    world: aWorld({
      vmi: aVmi({
        migrationState: { ...ANNOUNCED, migrationUid: 'lost' },
        migrationProgress: { migrationUid: 'lost', phase: 'Failed' },
      }),
    }),
    phase: 'Scheduling',
    changes: [MAKE_CLAIM, MAKE_POD],
  },
};

const refused: Record<string, Case> = {
  'a VMI that does not exist': { world: aWorld({ vmi: undefined }), message: 'VMI db does not exist' },
  'a VMI that has ended': {
    world: aWorld({ vmi: aVmi({ phase: 'Succeeded' }) }),
    message: 'Cannot migrate VMI in finalized state.',
  },
  'a VMI that is being deleted': { world: aWorld({ vmi: aVmi({}, {}, DELETED) }), message: 'the VMI is being deleted' },
  'a VMI that cannot be migrated': {
    world: aWorld({
      vmi: aVmi({ conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'HostDevice', message: 'no' }] }),
    }),
    message: 'Cannot migrate VMI, Reason: HostDevice, Message: no',
  },
  'M14: the second migration of a VMI': {
    world: aWorld({ others: [otherMigration('first')] }),
    message:
      'in-flight migration detected. Active migration job (first-uid) is currently already in progress for VMI db.',
  },
  'M14: a migration that was cancelled before it began': {
    world: aWorld({ migration: aMigration(undefined, DELETED) }),
    message: 'the migration was cancelled',
  },
};

const preparing: Record<string, Case> = {
  'waits for a node for the target pod': { world: aBegunWorld(), phase: 'Scheduling' },
  'announces everything in one plan when the target pod has a node': {
    world: aBegunWorld({ targetPod: aPod('target') }),
    phase: 'Scheduled',
    changes: [SOURCE_POD_PATCH, 'patch PersistentVolume pv-root', VMI],
  },
  'waits for a snapshot that began meanwhile': {
    world: aBegunWorld({
      targetPod: aPod('target'),
      vm: { status: { snapshotInProgress: 'nightly' } } as MigrationWorld['vm'],
    }),
    phase: 'Scheduled',
    message: 'snapshot nightly of the VM is in progress',
  },
  'waits for a device that is plugged meanwhile': {
    world: aBegunWorld({
      targetPod: aPod('target'),
      vmi: aVmi({ hotplug: [{ device: 'disk-b', phase: 'Plugging' }] }),
    }),
    phase: 'Scheduled',
    message: 'device disk-b of the VMI is plugging',
  },
  'waits for a disk that became busy meanwhile': {
    world: aBegunWorld({ targetPod: aPod('target'), claims: withVolume({ [LEFTOVER_NODE_ANNOTATION]: 'node-c' }) }),
    phase: 'Scheduled',
    message: /node node-c/,
  },
  'M14: removes the target pod if cancelled before the announcement': {
    world: aBegunWorld({}, DELETED),
    phase: 'Scheduling',
    message: 'the migration was cancelled',
    changes: [DROP_POD, RELEASE_TARGET],
  },
  'M14: marks the target claim as replaced after the pod is gone': {
    world: aBegunWorld({ targetPod: undefined, migration: failedMigration('the migration was cancelled') }),
    message: 'the migration was cancelled',
    changes: [`patch PersistentVolumeClaim ${TARGET_CLAIM}`],
  },
  'M14: deletes the target claim that it has marked as replaced': {
    world: aBegunWorld({
      targetPod: undefined,
      targetClaim: aStateClaim('target', { annotations: { [REPLACED_BY_ANNOTATION]: 'source-claim-uid' } }),
      migration: failedMigration('the migration was cancelled'),
    }),
    message: 'the migration was cancelled',
    changes: [`delete PersistentVolumeClaim ${TARGET_CLAIM}`],
  },
  'reports why the target pod cannot be scheduled yet': {
    world: aBegunWorld({ targetPod: unschedulablePod() }),
    phase: 'Scheduling',
    message: 'the target pod cannot be scheduled yet: 0/1 nodes',
  },
  'fails if the target pod cannot be scheduled within 5 minutes': {
    world: aBegunWorld({ targetPod: unschedulablePod(), now: NOW_MS + 5 * 60_000 }),
    message: 'the target pod could not be scheduled within 5 minutes: 0/1 nodes',
    changes: [DROP_POD, RELEASE_TARGET],
  },
  'fails if the target pod is not ready within 15 minutes': {
    world: aBegunWorld({ now: NOW_MS + 15 * 60_000 }),
    message: 'the target pod was not ready within 15 minutes',
    changes: [DROP_POD, RELEASE_TARGET],
  },
  'fails if the target pod has ended': {
    world: aBegunWorld({ targetPod: aPod('target', { phase: 'Failed', reason: 'Evicted' }) }),
    message: `the target pod ${TARGET_POD} has ended: Evicted`,
    changes: [DROP_POD, RELEASE_TARGET],
  },
  'fails if the source pod is being deleted': {
    world: aBegunWorld({ sourcePod: aPod('source', {}, DELETED) }),
    message: `the virt-launcher pod ${SOURCE_POD} of the guest is ending`,
    changes: [DROP_POD, RELEASE_TARGET],
  },
};

testDecisions('a migration that has not begun', beginning);
testDecisions('a migration that has begun', preparing);

describe('fails at once for', () => {
  for (const [sentence, { world, message }] of Object.entries(refused)) {
    test(sentence, () => {
      const { status, events, changes } = decideMigration(world);
      const { phase, message: reported, migrationState } = status as MigrationStatus;
      assert.deepEqual([phase, reported, migrationState?.failed], ['Failed', message, true]);
      assert.deepEqual(changes.map(describeChange), [END]);
      assert.equal(events?.[0]?.reason, 'FailedMigration');
    });
  }
});

test('each phase gets a timestamp, also one that passed between two reconciles', () => {
  const world = aBegunWorld({ targetPod: aPod('target'), now: NOW_MS + 1000 });
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

test('the instance gets the state of the migration, and nothing of the migration before', () => {
  const before = { ...ANNOUNCED, migrationUid: 'before', completed: true, endTimestamp: timestamp(NOW_MS) };
  const vmi = aVmi({ migrationState: { ...before, sourcePod: 'x', targetPod: SOURCE_POD } });
  const plan = decideMigration(aBegunWorld({ vmi, targetPod: aPod('target') }));
  const last = plan.changes.at(-1);
  assert(last?.do === 'patch');
  assert.deepEqual((last.patch.body as { value: unknown }[])[1]?.value, ANNOUNCED);
  assert.deepEqual((plan.status as MigrationStatus).migrationState, ANNOUNCED);
});

test('keeps the five newest finished migrations of an instance', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const finished = names.map((name, i) => {
    const migration = otherMigration(name, { phase: 'Succeeded' });
    return { ...migration, metadata: { ...migration.metadata, creationTimestamp: timestamp(NOW_MS + i * 1000) } };
  });
  const plan = decideMigration(aWorld({ migration: finished[6]!, finished }));
  assert.deepEqual(plan.changes.map(describeChange), [
    'patch VirtualMachineInstanceMigration g',
    'delete VirtualMachineInstanceMigration b',
    'delete VirtualMachineInstanceMigration a',
  ]);
  assert.equal(finished[6]?.metadata.finalizers?.[0], MIGRATION_FINALIZER);
});

const HOUR_MS = 3_600_000;
const gone = { vm: undefined, vmi: undefined };
const aVm = { metadata: { namespace: 'ns', name: 'db', uid: VM_UID } } as MigrationWorld['vm'];
const removalCases: Record<string, { world: Partial<MigrationWorld>; deleted: boolean; requeueAfterMs?: number }> = {
  'keeps a finished migration while its VM exists': {
    world: { vm: aVm, vmi: undefined, now: NOW_MS + HOUR_MS },
    deleted: false,
  },
  'keeps a finished migration while its instance exists': {
    world: { vm: undefined, now: NOW_MS + HOUR_MS },
    deleted: false,
  },
  'keeps a finished migration for an hour if its VM is gone': {
    world: { ...gone, now: NOW_MS + HOUR_MS - 1000 },
    deleted: false,
    requeueAfterMs: 1000,
  },
  'removes a finished migration after an hour if its VM is gone': {
    world: { ...gone, now: NOW_MS + HOUR_MS },
    deleted: true,
  },
};

for (const [name, { world, deleted, requeueAfterMs }] of Object.entries(removalCases)) {
  test(name, () => {
    const migration = aMigration({ phase: 'Succeeded' });
    const plan = decideMigration(aWorld({ migration, finished: [migration], ...world }));
    const changes = plan.changes.map(describeChange).filter((text) => text.startsWith('delete'));
    assert.deepEqual(changes, deleted ? ['delete VirtualMachineInstanceMigration go'] : []);
    assert.equal(plan.requeueAfterMs, requeueAfterMs);
  });
}

test('reports an object that could not be created', () => {
  const world = aBegunWorld({ targetPod: undefined });
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

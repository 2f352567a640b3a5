import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCommitted, hasLeft } from '#controllers/shared/launcher/migration-commit.ts';
import { aPod } from '#controllers/vmi/testing/vmi-world.ts';
import type { ConditionStatus } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

const podWithCondition = (status: ConditionStatus, message?: string, madeFor?: string): Pod =>
  aPod(
    { conditions: [{ type: 'selfsame.io/MigrationCommitted', status, ...(message && { message }) }] },
    madeFor === undefined ? {} : { labels: { 'kubevirt.io/migrationJobUID': madeFor } },
  );

const cases: Record<string, { pod: Pod | undefined; uid?: string | undefined; want: boolean }> = {
  'a missing pod is not committed': { pod: undefined, want: false },
  'a pod without the condition is not committed': { pod: aPod(), want: false },
  'a condition with the uid of the migration counts': { pod: podWithCondition('True', 'm2'), want: true },
  'a condition with the uid of another migration does not count': { pod: podWithCondition('True', 'm1'), want: false },
  'a condition that is False does not count': { pod: podWithCondition('False', 'm2'), want: false },
  'a condition without a uid on the first pod of the guest counts': { pod: podWithCondition('True'), want: true },
  'a condition without a uid on a pod of this migration counts': {
    pod: podWithCondition('True', undefined, 'm2'),
    want: true,
  },
  'a condition without a uid on a pod of another migration does not count': {
    pod: podWithCondition('True', undefined, 'm1'),
    want: false,
  },
  'the uid in the condition has precedence over that of the pod': {
    pod: podWithCondition('True', 'm2', 'm1'),
    want: true,
  },
  'without a migration nothing is committed': { pod: podWithCondition('True'), uid: undefined, want: false },
};
for (const [name, one] of Object.entries(cases)) {
  test(name, () => {
    const uid = 'uid' in one ? one.uid : 'm2';
    assert.equal(hasCommitted(one.pod, uid), one.want);
    assert.equal(hasLeft(one.pod, uid), one.want);
  });
}

test('a source pod that ended because the guest has migrated counts as left', () => {
  const pod = aPod({ phase: 'Succeeded', reason: 'Migrated' });
  assert.deepEqual([hasLeft(pod, 'm2'), hasCommitted(pod, 'm2')], [true, false]);
});

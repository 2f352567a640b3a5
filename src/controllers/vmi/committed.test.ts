import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCommitted, hasLeft } from '#controllers/vmi/committed.ts';
import { aPod } from '#controllers/vmi/vmi-world.fixture.ts';
import type { ConditionStatus } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

const saying = (status: ConditionStatus, message?: string, madeFor?: string): Pod =>
  aPod(
    { conditions: [{ type: 'selfsame.io/MigrationCommitted', status, ...(message && { message }) }] },
    madeFor === undefined ? {} : { labels: { 'kubevirt.io/migrationJobUID': madeFor } },
  );

const cases: Record<string, { pod: Pod | undefined; uid?: string | undefined; want: boolean }> = {
  'a pod that is not there says nothing': { pod: undefined, want: false },
  'nor does one that is silent': { pod: aPod(), want: false },
  'a pod says of which migration': { pod: saying('True', 'm2'), want: true },
  'not of another': { pod: saying('True', 'm1'), want: false },
  'no is no': { pod: saying('False', 'm2'), want: false },
  'the first that had the guest may leave it out': { pod: saying('True'), want: true },
  'so may one that was made for it': { pod: saying('True', undefined, 'm2'), want: true },
  'one that was made for another means that one': { pod: saying('True', undefined, 'm1'), want: false },
  'unless it says otherwise': { pod: saying('True', 'm2', 'm1'), want: true },
  'there is no migration': { pod: saying('True'), uid: undefined, want: false },
};
for (const [name, one] of Object.entries(cases)) {
  test(name, () => {
    const uid = 'uid' in one ? one.uid : 'm2';
    assert.equal(hasCommitted(one.pod, uid), one.want);
    assert.equal(hasLeft(one.pod, uid), one.want);
  });
}

test('a source that has ended because its guest has gone says enough', () => {
  const pod = aPod({ phase: 'Succeeded', reason: 'Migrated' });
  assert.deepEqual([hasLeft(pod, 'm2'), hasCommitted(pod, 'm2')], [true, false]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideForeground, decideOrphan } from '#engine/controllers/garbage-collector/decide-owner.ts';
import {
  aReference,
  aThing,
  blocking,
  DELETED,
  FOREGROUND,
  ORPHAN,
  uidOf,
} from '#engine/controllers/garbage-collector/testing/sample-object.ts';
import { describePlan } from '#engine/controllers/garbage-collector/testing/sample-plan.ts';
import { MAX_CHANGES, type Plan } from '#runtime/plan.ts';

const foreground = (metadata: object, isBlocked: boolean, ...cyclicOwners: string[]) =>
  decideForeground({ ...aThing('o', metadata), isBlocked, cyclicOwners: cyclicOwners.map(uidOf) });

const cases: Record<string, { plan: Plan; want: readonly string[] }> = {
  'removes the finalizer if nothing blocks the owner': {
    plan: foreground(FOREGROUND, false),
    want: ['patch o finalizers=[]'],
  },
  'keeps other finalizers': {
    plan: foreground({ ...DELETED, finalizers: ['a.b/c', 'foregroundDeletion'] }, false),
    want: ['patch o finalizers=[a.b/c]'],
  },
  'waits while a dependent blocks the owner': { plan: foreground(FOREGROUND, true), want: [] },
  'ignores an object that is not under deletion': {
    plan: foreground({ finalizers: ['foregroundDeletion'] }, false),
    want: [],
  },
  'stops blocking its owners in a cycle': {
    plan: foreground({ ...FOREGROUND, ownerReferences: [blocking('a'), blocking('b')] }, true, 'a'),
    want: ['patch o owners=[a b!]'],
  },
  'does not unblock an owner twice': {
    plan: foreground({ ...FOREGROUND, ownerReferences: [aReference('a')] }, true, 'a'),
    want: [],
  },
  'removes the orphan finalizer if there are no dependents': {
    plan: decideOrphan({ ...aThing('o', ORPHAN), dependents: [] }),
    want: ['patch o finalizers=[]'],
  },
  'removes the reference from dependents first and keeps other references': {
    plan: decideOrphan({
      ...aThing('o', ORPHAN),
      dependents: [
        aThing('a', { ownerReferences: [blocking('o')] }),
        aThing('b', { ownerReferences: [blocking('x'), aReference('o')] }),
      ],
    }),
    want: ['patch a owners=[]', 'patch b owners=[x!]', 'again'],
  },
  'ignores an owner without the orphan finalizer': {
    plan: decideOrphan({
      ...aThing('o', FOREGROUND),
      dependents: [aThing('a', { ownerReferences: [aReference('o')] })],
    }),
    want: [],
  },
};

for (const [name, { plan, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(describePlan(plan), want));
}

test('orphans at most as many dependents as a plan may change, and requeues', () => {
  const dependents = Array.from({ length: MAX_CHANGES + 1 }, (_, i) =>
    aThing(`d${i}`, { ownerReferences: [blocking('o')] }),
  );
  const { changes, requeueAfterMs } = decideOrphan({ ...aThing('o', ORPHAN), dependents });
  assert.deepEqual([changes.length, requeueAfterMs], [MAX_CHANGES, 0]);
});

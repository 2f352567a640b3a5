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
} from '#engine/controllers/garbage-collector/object.fixture.ts';
import { describePlan } from '#engine/controllers/garbage-collector/plan.fixture.ts';
import { MAX_CHANGES, type Plan } from '#runtime/plan.ts';

const foreground = (metadata: object, blocked: boolean, ...cyclicOwners: string[]) =>
  decideForeground({ ...aThing('o', metadata), isBlocked: blocked, cyclicOwners: cyclicOwners.map(uidOf) });

const cases: Record<string, { plan: Plan; want: readonly string[] }> = {
  'nothing blocks it: the finalizer goes': { plan: foreground(FOREGROUND, false), want: ['patch o finalizers=[]'] },
  'other finalizers stay': {
    plan: foreground({ ...DELETED, finalizers: ['a.b/c', 'foregroundDeletion'] }, false),
    want: ['patch o finalizers=[a.b/c]'],
  },
  'it waits while something blocks it': { plan: foreground(FOREGROUND, true), want: [] },
  'one that is not under deletion after all is left alone': {
    plan: foreground({ finalizers: ['foregroundDeletion'] }, false),
    want: [],
  },
  'in a circle it stops to block those above it': {
    plan: foreground({ ...FOREGROUND, ownerReferences: [blocking('a'), blocking('b')] }, true, 'a'),
    want: ['patch o owners=[a b!]'],
  },
  'what was unblocked meanwhile is not written again': {
    plan: foreground({ ...FOREGROUND, ownerReferences: [aReference('a')] }, true, 'a'),
    want: [],
  },
  'no dependents: the finalizer orphan goes': {
    plan: decideOrphan({ ...aThing('o', ORPHAN), dependents: [] }),
    want: ['patch o finalizers=[]'],
  },
  'dependents lose their reference first, and keep others': {
    plan: decideOrphan({
      ...aThing('o', ORPHAN),
      dependents: [
        aThing('a', { ownerReferences: [blocking('o')] }),
        aThing('b', { ownerReferences: [blocking('x'), aReference('o')] }),
      ],
    }),
    want: ['patch a owners=[]', 'patch b owners=[x!]', 'again'],
  },
  'an owner whose deletion was changed to another policy is left alone': {
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

test('a plan lets go of as many as a plan may change, and asks for another look', () => {
  const dependents = Array.from({ length: MAX_CHANGES + 1 }, (_, i) =>
    aThing(`d${i}`, { ownerReferences: [blocking('o')] }),
  );
  const { changes, requeueAfterMs } = decideOrphan({ ...aThing('o', ORPHAN), dependents });
  assert.deepEqual([changes.length, requeueAfterMs], [MAX_CHANGES, 0]);
});

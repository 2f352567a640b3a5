import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decideDependent,
  type DependentWorld,
  type OwnerObservation,
  type OwnerState,
} from '#engine/controllers/garbage-collector/decide-dependent.ts';
import { aThing, blocking, DELETED, uidOf } from '#engine/controllers/garbage-collector/object.fixture.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import { describePlan } from '#engine/controllers/garbage-collector/plan.fixture.ts';

interface Case {
  /** Names of owners and what was found of them; all references block. */
  readonly owners: Readonly<Record<string, OwnerState>>;
  readonly metadata?: ObjectMeta;
  readonly dependents?: DependentWorld['dependents'];
  /** Owners that no watch has shown. */
  readonly unwatched?: readonly string[];
  readonly elsewhere?: readonly string[];
  readonly want: readonly string[];
  readonly unsettled?: boolean;
  readonly misplaced?: readonly string[];
}

const cases: Record<string, Case> = {
  'what has no owner is not ours': { owners: {}, want: [] },
  'an owner that is there keeps it': { owners: { a: 'solid' }, want: [] },
  'an owner that is gone takes it along': { owners: { a: 'absent' }, want: ['delete thing Background'] },
  'the last of several owners takes it along': {
    owners: { a: 'absent', b: 'absent' },
    want: ['delete thing Background'],
  },
  'what is under deletion already goes by itself': { owners: { a: 'absent' }, metadata: DELETED, want: [] },
  'one owner is there, one is gone: only the reference goes': {
    owners: { a: 'solid', b: 'absent' },
    want: ['patch thing owners=[a!]'],
  },
  'one owner is there, one waits for it: it leaves that one': {
    owners: { a: 'waiting', b: 'solid' },
    want: ['patch thing owners=[b!]'],
  },
  'only what is solid stays of three': {
    owners: { a: 'waiting', b: 'solid', c: 'absent' },
    want: ['patch thing owners=[b!]'],
  },
  'its own finalizer asks for foreground': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['foregroundDeletion'] },
    want: ['delete thing Foreground'],
  },
  'its own finalizer asks for orphaning': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['orphan'] },
    want: ['delete thing Orphan'],
  },
  'other finalizers ask for nothing': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['example.org/hold'] },
    want: ['delete thing Background'],
  },
  'an owner waits, and nothing depends on it': { owners: { a: 'waiting' }, want: ['delete thing Background'] },
  'an owner waits: what depends on it goes first': {
    owners: { a: 'waiting' },
    dependents: 'some',
    want: ['delete thing Foreground'],
  },
  'one waits and one is gone: also in the foreground': {
    owners: { a: 'absent', b: 'waiting' },
    dependents: 'some',
    want: ['delete thing Foreground'],
  },
  'its owner and its dependent wait: it stops to block before it goes': {
    owners: { a: 'waiting' },
    dependents: 'waiting',
    want: ['patch thing owners=[a]', 'again'],
  },
  'when it has stopped to block, it goes': {
    owners: { a: 'waiting' },
    metadata: { ownerReferences: [{ ...blocking('a'), blockOwnerDeletion: false }] },
    dependents: 'waiting',
    want: ['delete thing Foreground'],
  },
  'a dependent that waits is no circle where all owners are gone': {
    owners: { a: 'absent' },
    dependents: 'waiting',
    want: ['delete thing Background'],
  },
  'a kind that is not served says nothing': { owners: { a: 'unserved' }, want: [], unsettled: true },
  'a kind that is not served keeps it, whatever the others are': {
    owners: { a: 'absent', b: 'unserved' },
    want: [],
    unsettled: true,
  },
  'with an unserved owner not even a reference is removed': {
    owners: { a: 'solid', b: 'absent', c: 'unserved' },
    want: [],
    unsettled: true,
  },
  'an owner that cannot be one never leads to a delete': { owners: { a: 'invalid' }, want: [], misplaced: ['a'] },
  'nor together with one that is gone': { owners: { a: 'invalid', b: 'absent' }, want: [], misplaced: ['a'] },
  'an owner in another namespace is absent, and somebody is told': {
    owners: { a: 'absent' },
    elsewhere: ['a'],
    want: ['delete thing Background'],
    misplaced: ['a'],
  },
  'an owner that no watch has shown is looked at again': {
    owners: { a: 'solid' },
    unwatched: ['a'],
    want: [],
    unsettled: true,
  },
  'an absent owner need not be watched': {
    owners: { a: 'solid', b: 'absent' },
    unwatched: ['b'],
    want: ['patch thing owners=[a!]'],
  },
};

for (const [name, { owners, metadata, unwatched = [], elsewhere = [], dependents = 'none', ...want }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const ownerReferences = metadata?.ownerReferences ?? Object.keys(owners).map(blocking);
    const looks = ownerReferences.map<OwnerObservation>((reference) => ({
      reference,
      state: owners[reference.name]!,
      isWatched: !unwatched.includes(reference.name),
      isInOtherNamespace: elsewhere.includes(reference.name),
    }));
    const thing = aThing('thing', { ...metadata, ownerReferences });
    const { plan, retryLater = false, invalidOwners } = decideDependent({ ...thing, owners: looks, dependents });
    assert.deepEqual(describePlan(plan), want.want);
    assert.equal(retryLater, want.unsettled ?? false);
    assert.deepEqual(
      invalidOwners.map(({ name: owner }) => owner),
      want.misplaced ?? [],
    );
  });
}

test('what is deleted or changed must be the very object in the very state that was looked at', () => {
  const look = (name: string, state: OwnerState): OwnerObservation => {
    return { reference: blocking(name), state, isWatched: true, isInOtherNamespace: false };
  };
  const thing = aThing('thing', { ownerReferences: [blocking('a'), blocking('b')] });
  const [deletion] = decideDependent({ ...thing, owners: [look('a', 'absent')], dependents: 'none' }).plan.changes;
  assert.ok(deletion?.do === 'delete');
  assert.deepEqual([deletion.uid, deletion.resourceVersion], [uidOf('thing'), '7']);
  const owners = [look('a', 'absent'), look('b', 'solid')];
  const [patch] = decideDependent({ ...thing, owners, dependents: 'none' }).plan.changes;
  assert.ok(patch?.do === 'patch');
  assert.equal(patch.uid, uidOf('thing'));
  assert.equal((patch.patch.body as { metadata: { resourceVersion: string } }).metadata.resourceVersion, '7');
});

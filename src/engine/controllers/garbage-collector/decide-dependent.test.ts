import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decideDependent,
  type DependentWorld,
  type OwnerObservation,
  type OwnerState,
} from '#engine/controllers/garbage-collector/decide-dependent.ts';
import { aThing, blocking, DELETED, uidOf } from '#engine/controllers/garbage-collector/testing/sample-object.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import { describePlan } from '#engine/controllers/garbage-collector/testing/sample-plan.ts';

interface Case {
  /** Names of owners with their state. All references block. */
  readonly owners: Readonly<Record<string, OwnerState>>;
  readonly metadata?: ObjectMeta;
  readonly dependents?: DependentWorld['dependents'];
  /** Owners that no watch has delivered. */
  readonly unwatched?: readonly string[];
  readonly inOtherNamespace?: readonly string[];
  readonly want: readonly string[];
  readonly retryLater?: boolean;
  readonly invalidOwners?: readonly string[];
}

const cases: Record<string, Case> = {
  'ignores an object without owners': { owners: {}, want: [] },
  'keeps an object with an existing owner': { owners: { a: 'solid' }, want: [] },
  'deletes an object whose owner does not exist': { owners: { a: 'absent' }, want: ['delete thing Background'] },
  'deletes an object if none of its owners exists': {
    owners: { a: 'absent', b: 'absent' },
    want: ['delete thing Background'],
  },
  'ignores an object under deletion': { owners: { a: 'absent' }, metadata: DELETED, want: [] },
  'removes the reference to an absent owner if another one exists': {
    owners: { a: 'solid', b: 'absent' },
    want: ['patch thing owners=[a!]'],
  },
  'removes the reference to a waiting owner if another one exists': {
    owners: { a: 'waiting', b: 'solid' },
    want: ['patch thing owners=[b!]'],
  },
  'keeps only the references to solid owners': {
    owners: { a: 'waiting', b: 'solid', c: 'absent' },
    want: ['patch thing owners=[b!]'],
  },
  'deletes in the foreground if its own finalizer requests it': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['foregroundDeletion'] },
    want: ['delete thing Foreground'],
  },
  'orphans its dependents if its own finalizer requests it': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['orphan'] },
    want: ['delete thing Orphan'],
  },
  'ignores other finalizers': {
    owners: { a: 'absent' },
    metadata: { finalizers: ['example.org/hold'] },
    want: ['delete thing Background'],
  },
  'deletes an object without dependents whose owner waits': {
    owners: { a: 'waiting' },
    want: ['delete thing Background'],
  },
  'deletes in the foreground if its owner waits and it has dependents': {
    owners: { a: 'waiting' },
    dependents: 'some',
    want: ['delete thing Foreground'],
  },
  'deletes in the foreground if one owner waits and one is absent': {
    owners: { a: 'absent', b: 'waiting' },
    dependents: 'some',
    want: ['delete thing Foreground'],
  },
  'stops blocking its owner first if its dependents wait as well': {
    owners: { a: 'waiting' },
    dependents: 'waiting',
    want: ['patch thing owners=[a]', 'again'],
  },
  'deletes an object that no longer blocks its owner': {
    owners: { a: 'waiting' },
    metadata: { ownerReferences: [{ ...blocking('a'), blockOwnerDeletion: false }] },
    dependents: 'waiting',
    want: ['delete thing Foreground'],
  },
  'deletes directly if all owners are absent, even if a dependent waits': {
    owners: { a: 'absent' },
    dependents: 'waiting',
    want: ['delete thing Background'],
  },
  "keeps an object whose owner's kind is not served": { owners: { a: 'unserved' }, want: [], retryLater: true },
  "keeps an object if one owner's kind is not served, regardless of the others": {
    owners: { a: 'absent', b: 'unserved' },
    want: [],
    retryLater: true,
  },
  "removes no reference if one owner's kind is not served": {
    owners: { a: 'solid', b: 'absent', c: 'unserved' },
    want: [],
    retryLater: true,
  },
  'keeps an object with an invalid owner': { owners: { a: 'invalid' }, want: [], invalidOwners: ['a'] },
  'keeps an object with an invalid and an absent owner': {
    owners: { a: 'invalid', b: 'absent' },
    want: [],
    invalidOwners: ['a'],
  },
  'treats an owner in another namespace as absent and reports it': {
    owners: { a: 'absent' },
    inOtherNamespace: ['a'],
    want: ['delete thing Background'],
    invalidOwners: ['a'],
  },
  'checks an owner again that no watch has delivered': {
    owners: { a: 'solid' },
    unwatched: ['a'],
    want: [],
    retryLater: true,
  },
  'does not require that an absent owner is watched': {
    owners: { a: 'solid', b: 'absent' },
    unwatched: ['b'],
    want: ['patch thing owners=[a!]'],
  },
};

for (const [
  name,
  { owners, metadata, unwatched = [], inOtherNamespace = [], dependents = 'none', ...want },
] of Object.entries(cases)) {
  test(name, () => {
    const ownerReferences = metadata?.ownerReferences ?? Object.keys(owners).map(blocking);
    const observations = ownerReferences.map<OwnerObservation>((reference) => ({
      reference,
      state: owners[reference.name]!,
      isWatched: !unwatched.includes(reference.name),
      isInOtherNamespace: inOtherNamespace.includes(reference.name),
    }));
    const thing = aThing('thing', { ...metadata, ownerReferences });
    const { plan, retryLater = false, invalidOwners } = decideDependent({ ...thing, owners: observations, dependents });
    assert.deepEqual(describePlan(plan), want.want);
    assert.equal(retryLater, want.retryLater ?? false);
    assert.deepEqual(
      invalidOwners.map(({ name: owner }) => owner),
      want.invalidOwners ?? [],
    );
  });
}

test('deletes and patches only the observed version of an object', () => {
  const observed = (name: string, state: OwnerState): OwnerObservation => {
    return { reference: blocking(name), state, isWatched: true, isInOtherNamespace: false };
  };
  const thing = aThing('thing', { ownerReferences: [blocking('a'), blocking('b')] });
  const [deletion] = decideDependent({ ...thing, owners: [observed('a', 'absent')], dependents: 'none' }).plan.changes;
  assert.ok(deletion?.do === 'delete');
  assert.deepEqual([deletion.uid, deletion.resourceVersion], [uidOf('thing'), '7']);
  const owners = [observed('a', 'absent'), observed('b', 'solid')];
  const [patch] = decideDependent({ ...thing, owners, dependents: 'none' }).plan.changes;
  assert.ok(patch?.do === 'patch');
  assert.equal(patch.uid, uidOf('thing'));
  assert.equal((patch.patch.body as { metadata: { resourceVersion: string } }).metadata.resourceVersion, '7');
});

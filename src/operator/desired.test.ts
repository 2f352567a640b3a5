/** What is put right, what is left alone, and with how little. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyJsonPatch } from '#kube/json-patch.ts';
import { applyMergePatch } from '#kube/merge-patch.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { desiredObject, idOf, repair, type Desired } from '#operator/desired.ts';

const TYPE: ResourceType = { group: 'x.io', version: 'v1', kind: 'Thing', plural: 'things', namespaced: false };
const HASH = 'operator.selfsame.io/hash';

const wanted = desiredObject(
  TYPE,
  { name: 'a', labels: { ours: 'yes' } },
  { spec: { rules: [{ verb: 'get' }, { verb: 'list' }], selector: {}, conditions: [], mode: 'x', way: null } },
);

/** As the server stores what we wrote, changed by a merge patch. */
function stored(patch: unknown = {}, from: Desired = wanted): Stored {
  const metadata = { uid: 'u1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  return applyMergePatch(applyMergePatch(structuredClone(from.object), { metadata }), patch) as Stored;
}

/** Paths of the patch; undefined where nothing is done. */
const cases: Record<string, { present: Stored; wanted?: Desired; want?: string[] }> = {
  'what is as it should be': { present: stored() },
  'fields that the server fills in': {
    present: stored({
      status: { ready: true },
      spec: { policy: 'Fail', rules: [{ verb: 'get', scope: '*' }, { verb: 'list' }] },
    }),
  },
  'labels and annotations of others': {
    present: stored({ metadata: { labels: { theirs: 'x' }, annotations: { theirs: 'x' } } }),
  },
  'empty things that the server leaves out': { present: stored({ spec: { selector: null, conditions: null } }) },
  'another value': { present: stored({ spec: { mode: 'y' } }), want: ['/spec'] },
  'a value that is gone': { present: stored({ spec: { mode: null } }), want: ['/spec'] },
  'one more in a list': {
    present: stored({ spec: { rules: [{ verb: 'get' }, { verb: 'list' }, {}] } }),
    want: ['/spec'],
  },
  'something in what is to be empty': { present: stored({ spec: { selector: { a: 'b' } } }), want: ['/spec'] },
  'something that is not to be there': { present: stored({ spec: { way: { out: 'x' } } }), want: ['/spec'] },
  'something in a list that is to be empty': { present: stored({ spec: { conditions: ['no'] } }), want: ['/spec'] },
  'a label of ours': { present: stored({ metadata: { labels: { ours: 'no' } } }), want: ['/metadata/labels/ours'] },
  'no labels at all': { present: stored({ metadata: { labels: null } }), want: ['/metadata/labels'] },
  'one of an older version of ours, which said more': {
    present: stored({ spec: { extra: 1 }, metadata: { annotations: { [HASH]: 'old' } } }),
    want: ['/metadata/annotations/operator.selfsame.io~1hash', '/spec'],
  },
  'settings that are others': { present: stored({ spec: { mode: 'y' } }), wanted: { ...wanted, once: true } },
  'one that is being deleted': {
    present: stored({ spec: { mode: 'y' }, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
  },
};

for (const [name, { present, wanted: asked = wanted, want }] of Object.entries(cases)) {
  test(`${want === undefined ? 'leaves alone' : 'puts right'}: ${name}`, () => {
    const change = repair(asked, present);
    if (want === undefined) return assert.equal(change, undefined);
    assert.ok(change?.do === 'patch');
    assert.equal(change.uid, 'u1');
    const operations = change.patch.body as { path: string }[];
    assert.deepEqual(operations.map(({ path }) => path).toSorted(), want.toSorted());
    // Once is enough.
    assert.equal(repair(asked, applyJsonPatch(present, operations) as Stored), undefined);
  });
}

const shared = desiredObject(
  TYPE,
  { name: 'a' },
  { spec: { sets: [{ mode: 'x' }], deep: { ours: 1 } } },
  { isShared: true },
);

test('an object that another controller writes, too, claims no label and no version', () => {
  assert.deepEqual(shared.object.metadata, { name: 'a' });
});

const sharedCases: Record<string, { present: Stored; want?: unknown }> = {
  'as it should be': { present: stored({}, shared) },
  'labels, a status and fields of theirs': {
    present: stored(
      {
        metadata: { labels: { 'app.kubernetes.io/managed-by': 'theirs' } },
        spec: { clone: 'copy', deep: { theirs: 2 } },
        status: { sets: [] },
      },
      shared,
    ),
  },
  'made by them, without our field': {
    present: stored({ metadata: { labels: { theirs: 'x' } }, spec: { sets: null, clone: 'copy' } }, shared),
    want: { sets: [{ mode: 'x' }], deep: { ours: 1 }, clone: 'copy' },
  },
  'another value of our field': {
    present: stored({ spec: { sets: [{ mode: 'y' }], deep: { theirs: 2 } } }, shared),
    want: { sets: [{ mode: 'x' }], deep: { ours: 1, theirs: 2 } },
  },
};

for (const [name, { present, want }] of Object.entries(sharedCases)) {
  test(`${want === undefined ? 'leaves alone' : 'merges its fields into'} an object of another controller: ${name}`, () => {
    const change = repair(shared, present);
    if (want === undefined) return assert.equal(change, undefined);
    assert.ok(change?.do === 'patch' && change.patch.type === 'merge');
    const repaired = applyMergePatch(present, change.patch.body) as Stored;
    assert.deepEqual(repaired['spec'], want);
    assert.deepEqual(repaired.metadata, present.metadata);
    assert.equal(repair(shared, repaired), undefined);
  });
}

test('makes what is missing, with what is set only then', () => {
  const change = repair({ ...wanted, initialAnnotations: { first: 'x' } }, undefined);
  assert.ok(change?.do === 'create');
  assert.equal(change.object.metadata.annotations?.['first'], 'x');
  assert.equal(change.why, 'things.x.io/a is missing');
});

test('an id names the kind, the namespace where there is one, and the object', () => {
  assert.equal(idOf(wanted), 'things.x.io/a');
  assert.equal(
    idOf(desiredObject({ ...TYPE, group: '', namespaced: true }, { namespace: 'n', name: 'a' })),
    'things/n/a',
  );
});

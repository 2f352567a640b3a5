/** Tests which differences are repaired, and with how small a patch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import { desiredObject, idOf, repair, type DesiredObject } from '#operator/desired.ts';

const TYPE: ResourceType = { group: 'x.io', version: 'v1', kind: 'Thing', plural: 'things', namespaced: false };
const HASH = 'operator.selfsame.io/hash';

const wanted = desiredObject(
  TYPE,
  { name: 'a', labels: { ours: 'yes' } },
  { spec: { rules: [{ verb: 'get' }, { verb: 'list' }], selector: {}, conditions: [], mode: 'x', way: null } },
);

/** Returns the object as the server stores it, changed by a merge patch. */
function aStoredObject(patch: unknown = {}, from: DesiredObject = wanted): Stored {
  const metadata = { uid: 'u1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  return applyMergePatch(applyMergePatch(structuredClone(from.object), { metadata }), patch) as Stored;
}

/** `want` has the paths of the patch; undefined if there is no change. */
const cases: Record<string, { present: Stored; wanted?: DesiredObject; want?: string[] }> = {
  'no difference': { present: aStoredObject() },
  'fields that the server fills in': {
    present: aStoredObject({
      status: { ready: true },
      spec: { policy: 'Fail', rules: [{ verb: 'get', scope: '*' }, { verb: 'list' }] },
    }),
  },
  'labels and annotations of other users': {
    present: aStoredObject({ metadata: { labels: { theirs: 'x' }, annotations: { theirs: 'x' } } }),
  },
  'empty fields that the server drops': { present: aStoredObject({ spec: { selector: null, conditions: null } }) },
  'another value': { present: aStoredObject({ spec: { mode: 'y' } }), want: ['/spec'] },
  'a missing value': { present: aStoredObject({ spec: { mode: null } }), want: ['/spec'] },
  'an additional list item': {
    present: aStoredObject({ spec: { rules: [{ verb: 'get' }, { verb: 'list' }, {}] } }),
    want: ['/spec'],
  },
  'a value in an object that should be empty': {
    present: aStoredObject({ spec: { selector: { a: 'b' } } }),
    want: ['/spec'],
  },
  'a field that should be absent': { present: aStoredObject({ spec: { way: { out: 'x' } } }), want: ['/spec'] },
  'an item in a list that should be empty': {
    present: aStoredObject({ spec: { conditions: ['no'] } }),
    want: ['/spec'],
  },
  'a changed label of ours': {
    present: aStoredObject({ metadata: { labels: { ours: 'no' } } }),
    want: ['/metadata/labels/ours'],
  },
  'missing labels': { present: aStoredObject({ metadata: { labels: null } }), want: ['/metadata/labels'] },
  'an object of an older version with an additional field': {
    present: aStoredObject({ spec: { extra: 1 }, metadata: { annotations: { [HASH]: 'old' } } }),
    want: ['/metadata/annotations/operator.selfsame.io~1hash', '/spec'],
  },
  'settings, which belong to the administrator': {
    present: aStoredObject({ spec: { mode: 'y' } }),
    wanted: { ...wanted, once: true },
  },
  'an object that is being deleted': {
    present: aStoredObject({ spec: { mode: 'y' }, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
  },
};

for (const [name, { present, wanted: target = wanted, want }] of Object.entries(cases)) {
  test(`${want === undefined ? 'ignores' : 'repairs'} ${name}`, () => {
    const change = repair(target, present);
    if (want === undefined) return assert.equal(change, undefined);
    assert.ok(change?.do === 'patch');
    assert.equal(change.uid, 'u1');
    const operations = change.patch.body as { path: string }[];
    assert.deepEqual(operations.map(({ path }) => path).toSorted(), want.toSorted());
    // A second call changes nothing.
    assert.equal(repair(target, applyJsonPatch(present, operations) as Stored), undefined);
  });
}

const shared = desiredObject(
  TYPE,
  { name: 'a' },
  { spec: { sets: [{ mode: 'x' }], deep: { ours: 1 } } },
  { isShared: true },
);

test('a shared object has no label and no hash of ours', () => {
  assert.deepEqual(shared.object.metadata, { name: 'a' });
});

const sharedCases: Record<string, { present: Stored; want?: unknown }> = {
  'no difference': { present: aStoredObject({}, shared) },
  'labels, status and fields of the other controller': {
    present: aStoredObject(
      {
        metadata: { labels: { 'app.kubernetes.io/managed-by': 'theirs' } },
        spec: { clone: 'copy', deep: { theirs: 2 } },
        status: { sets: [] },
      },
      shared,
    ),
  },
  'an object of the other controller without our field': {
    present: aStoredObject({ metadata: { labels: { theirs: 'x' } }, spec: { sets: null, clone: 'copy' } }, shared),
    want: { sets: [{ mode: 'x' }], deep: { ours: 1 }, clone: 'copy' },
  },
  'another value of our field': {
    present: aStoredObject({ spec: { sets: [{ mode: 'y' }], deep: { theirs: 2 } } }, shared),
    want: { sets: [{ mode: 'x' }], deep: { ours: 1, theirs: 2 } },
  },
};

for (const [name, { present, want }] of Object.entries(sharedCases)) {
  test(`${want === undefined ? 'leaves a shared object unchanged' : 'merges our fields into a shared object'}: ${name}`, () => {
    const change = repair(shared, present);
    if (want === undefined) return assert.equal(change, undefined);
    assert.ok(change?.do === 'patch' && change.patch.type === 'merge');
    const repaired = applyMergePatch(present, change.patch.body) as Stored;
    assert.deepEqual(repaired['spec'], want);
    assert.deepEqual(repaired.metadata, present.metadata);
    assert.equal(repair(shared, repaired), undefined);
  });
}

test('creates a missing object with its initial annotations', () => {
  const change = repair({ ...wanted, initialAnnotations: { first: 'x' } }, undefined);
  assert.ok(change?.do === 'create');
  assert.equal(change.object.metadata.annotations?.['first'], 'x');
  assert.equal(change.why, 'things.x.io/a is missing');
});

test('an id consists of kind, namespace, if there is one, and name', () => {
  assert.equal(idOf(wanted), 'things.x.io/a');
  assert.equal(
    idOf(desiredObject({ ...TYPE, group: '', namespaced: true }, { namespace: 'n', name: 'a' })),
    'things/n/a',
  );
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { decideMark, type MarkWorld } from '#controllers/protection/decide-mark.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

interface Case {
  readonly mark?: string;
  readonly metadata?: ObjectMeta;
  readonly vms: readonly string[];
  readonly waitMs?: number;
  /** The mark that is written, null where it is removed; absent: nothing is written. */
  readonly want?: string | null;
  readonly wantWaitMs?: number;
}

const DELETED = { deletionTimestamp: '2026-01-01T12:00:00Z' };

const cases: Record<string, Case> = {
  'marks what has no mark': { vms: ['db'], want: 'db' },
  'names them in the order in which they come': { vms: ['a', 'b', 'c'], want: 'a, b, c' },
  'names no more than three': { vms: ['a', 'b', 'c', 'd', 'e'], want: 'a, b, c and others' },
  'leaves a right mark': { mark: 'a, b', vms: ['a', 'b'] },
  'leaves a mark that says already that there are others': {
    mark: 'a, b, c and others',
    vms: ['a', 'b', 'c', 'x', 'y'],
  },
  'corrects a wrong mark': { mark: 'nobody', vms: ['db'], want: 'db' },
  'corrects an empty mark': { mark: '', vms: ['db'], want: 'db' },
  'leaves what has and needs no mark': { vms: [] },
  'removes a mark without a VM': { mark: 'db', vms: [], want: null },
  'removes an empty mark without a VM': { mark: '', vms: [], want: null },
  'does not mark what is being deleted': { metadata: DELETED, vms: ['db'] },
  'does not remove the mark of what is being deleted': { mark: 'db', metadata: DELETED, vms: [] },
  'lets another wording wait': { mark: 'a', vms: ['a', 'b'], waitMs: 70, wantWaitMs: 70 },
  'does not let the first mark wait': { vms: ['a'], waitMs: 70, want: 'a' },
  'does not let a mark in place of an empty one wait': { mark: '', vms: ['a'], waitMs: 70, want: 'a' },
  'does not let the last removal wait': { mark: 'a', vms: [], waitMs: 70, want: null },
  'does not look again where nothing waits': { mark: 'a', vms: ['a'], waitMs: 70 },
};

describe('the mark', () => {
  for (const [sentence, { mark, metadata, vms, waitMs = 0, want, wantWaitMs }] of Object.entries(cases)) {
    test(sentence, () => {
      const plan = decideMark(aWorld({ vms, waitMs, object: aClaim(mark, metadata) }));
      const written = plan.changes.map((change) => (change.do === 'patch' ? change.patch.body : change.do));
      const annotations = { [PROTECTED_VMS_ANNOTATION]: want };
      assert.deepEqual(written, want === undefined ? [] : [{ metadata: { resourceVersion: '7', annotations } }]);
      assert.equal(plan.requeueAfterMs, wantWaitMs);
    });
  }

  test('is written to the very object only', () => {
    const [change] = decideMark(aWorld({ vms: ['db'] })).changes;
    assert(change?.do === 'patch');
    assert.deepEqual(change.name, { namespace: 'ns', name: 'disk' });
    assert.deepEqual([change.type, change.uid, change.patch.type], [PERSISTENT_VOLUME_CLAIMS, 'disk-uid', 'merge']);
  });
});

function aWorld(overrides: Partial<MarkWorld>): MarkWorld {
  return { type: PERSISTENT_VOLUME_CLAIMS, object: aClaim(), vms: [], waitMs: 0, ...overrides };
}

function aClaim(mark?: string, metadata: ObjectMeta = {}): Stored {
  const annotations = { other: 'stays', ...(mark === undefined ? {} : { [PROTECTED_VMS_ANNOTATION]: mark }) };
  const identity = { namespace: 'ns', name: 'disk', uid: 'disk-uid', resourceVersion: '7' };
  const creationTimestamp = '2026-01-01T00:00:00Z';
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...identity, creationTimestamp, annotations, ...metadata },
  };
}

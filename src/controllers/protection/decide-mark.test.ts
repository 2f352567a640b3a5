import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { decideMark, type MarkWorld } from '#controllers/protection/decide-mark.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

interface Case {
  readonly mark?: string;
  readonly metadata?: ObjectMeta;
  readonly vms: readonly string[];
  readonly waitMs?: number;
  /** The mark that is written, null if it is removed, absent if nothing is written. */
  readonly want?: string | null;
  readonly wantWaitMs?: number;
}

const DELETED = { deletionTimestamp: '2026-01-01T12:00:00Z' };

const cases: Record<string, Case> = {
  'marks an object without a mark': { vms: ['db'], want: 'db' },
  'names the VMs in the given order': { vms: ['a', 'b', 'c'], want: 'a, b, c' },
  'names at most three VMs': { vms: ['a', 'b', 'c', 'd', 'e'], want: 'a, b, c and others' },
  'keeps a correct mark': { mark: 'a, b', vms: ['a', 'b'] },
  'keeps a mark that already says that there are others': {
    mark: 'a, b, c and others',
    vms: ['a', 'b', 'c', 'x', 'y'],
  },
  'corrects a wrong mark': { mark: 'nobody', vms: ['db'], want: 'db' },
  'corrects an empty mark': { mark: '', vms: ['db'], want: 'db' },
  'adds no mark without a VM': { vms: [] },
  'removes a mark without a VM': { mark: 'db', vms: [], want: null },
  'removes an empty mark without a VM': { mark: '', vms: [], want: null },
  'does not mark an object under deletion': { metadata: DELETED, vms: ['db'] },
  'does not remove the mark of an object under deletion': { mark: 'db', metadata: DELETED, vms: [] },
  'delays another wording': { mark: 'a', vms: ['a', 'b'], waitMs: 70, wantWaitMs: 70 },
  'does not delay the first mark': { vms: ['a'], waitMs: 70, want: 'a' },
  'does not delay the replacement of an empty mark': { mark: '', vms: ['a'], waitMs: 70, want: 'a' },
  'does not delay the removal': { mark: 'a', vms: [], waitMs: 70, want: null },
  'does not requeue a correct mark': { mark: 'a', vms: ['a'], waitMs: 70 },
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

  test('is written with the uid of the object', () => {
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

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitedDataNode, decideLocalVolume } from '#controllers/storage/decide-local-volume.ts';
import { aVolume, describePlan, NOW, SHARED } from '#controllers/shared/local-storage/testing/sample-storage.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

const aWorld = { dataNodeExists: true, leftoverNodeExists: true, copyNodeExists: true, isBeingSnapshotted: false };

describe('a volume', () => {
  const cases: Record<string, { volume: Stored<PersistentVolume>; want: string[] }> = {
    'is deleted when it is released': {
      volume: aVolume({ status: { phase: 'Released' } }),
      want: ['delete PersistentVolume'],
    },
    'is deleted once': {
      volume: aVolume({ status: { phase: 'Released' }, metadata: { deletionTimestamp: NOW } }),
      want: [],
    },
    'stays while it is bound': { volume: aVolume({ status: { phase: 'Bound' } }), want: [] },
    'stays with the policy Retain': {
      volume: aVolume({
        status: { phase: 'Released' },
        spec: { persistentVolumeReclaimPolicy: 'Retain' },
      }),
      want: [],
    },
    'is ignored if it has another provisioner': {
      volume: aVolume({ status: { phase: 'Released' }, metadata: { annotations: {} } }),
      want: [],
    },
  };
  for (const [name, { volume, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideLocalVolume({ ...aWorld, volume })), want));
  }

  it('is not deleted while a snapshot of it is in progress', () => {
    const volume = aVolume({ status: { phase: 'Released' } });
    assert.deepEqual(describePlan(decideLocalVolume({ ...aWorld, volume, isBeingSnapshotted: true })), []);
  });

  const metadata = (more: object = {}) => ({
    deletionTimestamp: NOW,
    finalizers: ['selfsame.io/volume-data'],
    annotations: { ...aVolume().metadata.annotations, 'selfsame.io/volume-node': 'node-1' },
    ...more,
  });
  const stranded: Record<string, { metadata: object; want: string[] }> = {
    'reports that the node of its data is lost': { metadata: metadata(), want: ['VolumeNodeGone'] },
    'reports a lost node only when it is deleted': { metadata: metadata({ deletionTimestamp: undefined }), want: [] },
    'reports a lost node only while it has data': { metadata: metadata({ finalizers: ['other'] }), want: [] },
  };
  for (const [name, { metadata: changed, want }] of Object.entries(stranded)) {
    it(name, () => {
      const volume = aVolume({ status: { phase: 'Released' }, metadata: changed });
      const decided = describePlan(decideLocalVolume({ ...aWorld, volume, dataNodeExists: false }));
      assert.deepEqual(
        decided.filter((deed) => !deed.startsWith('delete')),
        want,
      );
    });
  }
});

describe('a volume with a leftover copy', () => {
  const left = (metadata: object = {}) =>
    aVolume({
      status: { phase: 'Bound' },
      metadata: {
        annotations: { ...aVolume().metadata.annotations, 'selfsame.io/leftover-node': 'node-2' },
        ...metadata,
      },
    });

  it('waits for the node of the copy', () => {
    assert.deepEqual(decideLocalVolume({ ...aWorld, volume: left() }).changes, []);
  });

  const cases: Record<string, Stored<PersistentVolume>> = {
    'gives up the copy when its node is lost': left(),
    'gives up the copy also when it is under deletion': left({ deletionTimestamp: NOW }),
  };
  for (const [name, volume] of Object.entries(cases)) {
    it(name, () => {
      const { changes } = decideLocalVolume({ ...aWorld, volume, leftoverNodeExists: false });
      assert.deepEqual(
        changes.map((change) => change.do === 'patch' && [change.reason, change.patch.body]),
        [
          [
            'LeftoverNodeGone',
            [
              { op: 'test', path: '/metadata/annotations/selfsame.io~1leftover-node', value: 'node-2' },
              { op: 'remove', path: '/metadata/annotations/selfsame.io~1leftover-node' },
            ],
          ],
        ],
      );
      assert.match(changes[0]?.why ?? '', /^Node node-2 does not exist any more/);
    });
  }

  it('is ignored if it has another provisioner', () => {
    const volume = left({ annotations: { 'selfsame.io/leftover-node': 'node-2' } });
    assert.deepEqual(decideLocalVolume({ ...aWorld, volume, leftoverNodeExists: false }).changes, []);
  });

  it('has its data on the node in the annotation, not on that of its creation', () => {
    const annotations = { ...aVolume().metadata.annotations, 'selfsame.io/volume-node': 'node-2' };
    const volume = aVolume({
      metadata: { annotations, deletionTimestamp: NOW, finalizers: ['selfsame.io/volume-data'] },
    });
    assert.equal(volume.spec.csi?.volumeAttributes?.['node'], 'node-1');
    assert.equal(awaitedDataNode(volume), 'node-2');
  });
});

describe('a volume that is not filled yet', () => {
  const anywhere = { handle: 'shared/snapcontent-s1', node: 'node-1' };
  const here = { handle: 'node/node-1/snapcontent-s1', node: 'node-1' };
  const released = { phase: 'Released' as const };
  interface Case {
    readonly volume: Stored<PersistentVolume>;
    readonly copyNodeExists?: boolean;
    readonly copier?: string;
    readonly want: string[];
  }
  const cases: Record<string, Case> = {
    'keeps its node': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      copyNodeExists: true,
      copier: 'node-2',
      want: [],
    },
    'gets another node when its node is lost': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'gets a node if it has none': {
      volume: aVolume({ storageClass: SHARED, copy: { handle: anywhere.handle } }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'waits if no node can copy': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      want: ['later'],
    },
    'waits for the node that has the snapshot': {
      volume: aVolume({ storageClass: SHARED, copy: here }),
      copier: 'node-2',
      want: [],
    },
    'gets any node when it is under deletion': {
      volume: aVolume({ storageClass: SHARED, copy: here, metadata: { deletionTimestamp: NOW } }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'waits for the node that has the volume': { volume: aVolume({ copy: anywhere }), copier: 'node-2', want: [] },
    'is unchanged when it is filled': { volume: aVolume({ storageClass: SHARED }), copier: 'node-2', want: [] },
    'is deleted when it is released': {
      volume: aVolume({ copy: here, status: released }),
      copyNodeExists: true,
      want: ['delete PersistentVolume'],
    },
  };
  for (const [name, { volume, copyNodeExists = false, copier, want }] of Object.entries(cases)) {
    it(name, () => {
      const plan = decideLocalVolume({ ...aWorld, volume, copyNodeExists, copier });
      const described = plan.changes.map((change) =>
        change.do === 'patch' ? nodeIn(change.patch.body) : `${change.do} ${change.type.kind}`,
      );
      assert.deepEqual(plan.requeueAfterMs === undefined ? described : ['later'], want);
    });
  }

  function nodeIn(body: unknown): string | undefined {
    const { metadata } = body as PersistentVolume;
    return metadata.annotations?.['selfsame.io/volume-copy-node'];
  }
});

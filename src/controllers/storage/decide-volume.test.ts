import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitedHome, decideVolume } from '#controllers/storage/decide-volume.ts';
import { aVolume, deedsOf, NOW, SHARED } from '#controllers/storage/storage.fixture.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

const aWorld = { homeExists: true, leftoverNodeExists: true, copyNodeExists: true, isBeingTaken: false };

describe('a volume', () => {
  const cases: Record<string, { volume: Stored<PersistentVolume>; want: string[] }> = {
    'is deleted when its claim let it go': {
      volume: aVolume({ status: { phase: 'Released' } }),
      want: ['delete PersistentVolume'],
    },
    'is deleted once': {
      volume: aVolume({ status: { phase: 'Released' }, metadata: { deletionTimestamp: NOW } }),
      want: [],
    },
    'stays while it is bound': { volume: aVolume({ status: { phase: 'Bound' } }), want: [] },
    'stays where somebody wants to keep it': {
      volume: aVolume({
        status: { phase: 'Released' },
        spec: { persistentVolumeReclaimPolicy: 'Retain' },
      }),
      want: [],
    },
    'of others is left to them': {
      volume: aVolume({ status: { phase: 'Released' }, metadata: { annotations: {} } }),
      want: [],
    },
  };
  for (const [name, { volume, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideVolume({ ...aWorld, volume })), want));
  }

  it('waits for a snapshot that is being taken of it', () => {
    const volume = aVolume({ status: { phase: 'Released' } });
    assert.deepEqual(deedsOf(decideVolume({ ...aWorld, volume, isBeingTaken: true })), []);
  });

  const metadata = (more: object = {}) => ({
    deletionTimestamp: NOW,
    finalizers: ['selfsame.io/volume-data'],
    annotations: { ...aVolume().metadata.annotations, 'selfsame.io/volume-node': 'node-1' },
    ...more,
  });
  const stranded: Record<string, { metadata: object; want: string[] }> = {
    'says that the node is gone that would remove its data': { metadata: metadata(), want: ['VolumeNodeGone'] },
    'says so only when it is to go': { metadata: metadata({ deletionTimestamp: undefined }), want: [] },
    'says so only while the data are waited for': { metadata: metadata({ finalizers: ['other'] }), want: [] },
  };
  for (const [name, { metadata: changed, want }] of Object.entries(stranded)) {
    it(name, () => {
      const volume = aVolume({ status: { phase: 'Released' }, metadata: changed });
      const decided = deedsOf(decideVolume({ ...aWorld, volume, homeExists: false }));
      assert.deepEqual(
        decided.filter((deed) => !deed.startsWith('delete')),
        want,
      );
    });
  }
});

describe('a volume of which a guest left a copy behind', () => {
  const left = (metadata: object = {}) =>
    aVolume({
      status: { phase: 'Bound' },
      metadata: {
        annotations: { ...aVolume().metadata.annotations, 'selfsame.io/leftover-node': 'node-2' },
        ...metadata,
      },
    });

  it('waits for the node that has it', () => {
    assert.deepEqual(decideVolume({ ...aWorld, volume: left() }).changes, []);
  });

  const cases: Record<string, Stored<PersistentVolume>> = {
    'gives it up, and says so, when that node is gone': left(),
    'gives it up also when it is to go itself': left({ deletionTimestamp: NOW }),
  };
  for (const [name, volume] of Object.entries(cases)) {
    it(name, () => {
      const { changes } = decideVolume({ ...aWorld, volume, leftoverNodeExists: false });
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
      assert.match(changes[0]?.why ?? '', /^Node node-2 no longer exists/);
    });
  }

  it('of others is left to them', () => {
    const volume = left({ annotations: { 'selfsame.io/leftover-node': 'node-2' } });
    assert.deepEqual(decideVolume({ ...aWorld, volume, leftoverNodeExists: false }).changes, []);
  });

  it('has its home where the annotation says, whatever it was made with', () => {
    const annotations = { ...aVolume().metadata.annotations, 'selfsame.io/volume-node': 'node-2' };
    const volume = aVolume({
      metadata: { annotations, deletionTimestamp: NOW, finalizers: ['selfsame.io/volume-data'] },
    });
    assert.equal(volume.spec.csi?.volumeAttributes?.['node'], 'node-1');
    assert.equal(awaitedHome(volume), 'node-2');
  });
});

describe('a volume that is to be filled', () => {
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
    'stays with its node': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      copyNodeExists: true,
      copier: 'node-2',
      want: [],
    },
    'gets another node when that is gone': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'gets one when there was none': {
      volume: aVolume({ storageClass: SHARED, copy: { handle: anywhere.handle } }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'waits for a node where there is none': {
      volume: aVolume({ storageClass: SHARED, copy: anywhere }),
      want: ['later'],
    },
    'waits for the one node that has the snapshot': {
      volume: aVolume({ storageClass: SHARED, copy: here }),
      copier: 'node-2',
      want: [],
    },
    'needs any node when it is to go': {
      volume: aVolume({ storageClass: SHARED, copy: here, metadata: { deletionTimestamp: NOW } }),
      copier: 'node-2',
      want: ['node-2'],
    },
    'waits for the node on which it lies': { volume: aVolume({ copy: anywhere }), copier: 'node-2', want: [] },
    'is left alone when it is filled': { volume: aVolume({ storageClass: SHARED }), copier: 'node-2', want: [] },
    'is deleted like any other': {
      volume: aVolume({ copy: here, status: released }),
      copyNodeExists: true,
      want: ['delete PersistentVolume'],
    },
  };
  for (const [name, { volume, copyNodeExists = false, copier, want }] of Object.entries(cases)) {
    it(name, () => {
      const plan = decideVolume({ ...aWorld, volume, copyNodeExists, copier });
      const told = plan.changes.map((change) =>
        change.do === 'patch' ? nodeIn(change.patch.body) : `${change.do} ${change.type.kind}`,
      );
      assert.deepEqual(plan.requeueAfterMs === undefined ? told : ['later'], want);
    });
  }

  function nodeIn(body: unknown): string | undefined {
    const { metadata } = body as PersistentVolume;
    return metadata.annotations?.['selfsame.io/volume-copy-node'];
  }
});

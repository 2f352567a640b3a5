import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aContent, aVolume, NOW, SHARED } from '#controllers/storage/storage.fixture.ts';
import { type ContentWorld, decideSnapshotContent } from '#controllers/volume-snapshot/decide-snapshot-content.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

const ANYWHERE = aVolume({ storageClass: SHARED });
const GOING = { deletionTimestamp: NOW };
const TAKEN = { snapshotHandle: 'shared/snapcontent-s1', creationTime: 1 };

const aWorld = (more: Partial<ContentWorld> = {}): ContentWorld => ({
  content: aContent(),
  snapshotExists: true,
  nodeExists: true,
  copier: 'node-2',
  ...more,
});

/** `node-2` for a new node, the verb for the rest. */
function deedsOf({ changes, events = [], requeueAfterMs }: Plan): string[] {
  const done = changes.map((change) => {
    if (change.do !== 'patch') return change.do;
    const { metadata } = change.patch.body as VolumeSnapshotContent;
    return metadata.annotations?.['selfsame.io/snapshot-node'] ?? 'nowhere';
  });
  return [...done, ...events.map(({ reason }) => reason), ...(requeueAfterMs === undefined ? [] : ['later'])];
}

describe('a VolumeSnapshotContent', () => {
  const cases: Record<string, { world: Partial<ContentWorld>; want: string[] }> = {
    'is left to its node': { world: {}, want: [] },
    'gets another node when that is gone and any will do': {
      world: { nodeExists: false, volume: ANYWHERE },
      want: ['node-2'],
    },
    'waits for a node where there is none': {
      world: { nodeExists: false, volume: ANYWHERE, copier: undefined },
      want: ['later'],
    },
    'waits for the node that has the volume, and says that it is gone': {
      world: { nodeExists: false, volume: aVolume() },
      want: ['SnapshotNodeGone'],
    },
    'needs no node once it is taken': {
      world: { nodeExists: false, volume: ANYWHERE, content: aContent({ status: TAKEN }) },
      want: [],
    },
    'goes after a VolumeSnapshot that went without it': { world: { snapshotExists: false }, want: ['delete'] },
    'stays when it is to be retained': {
      world: { snapshotExists: false, content: aContent({ spec: { deletionPolicy: 'Retain' } }) },
      want: [],
    },
    'of others is left to them': {
      world: { snapshotExists: false, content: aContent({ spec: { driver: 'x' } }) },
      want: [],
    },
    'that a person made of data that are there asks for no node': {
      world: { nodeExists: false, content: aContent({ spec: { source: { snapshotHandle: 'shared/x' } } }) },
      want: [],
    },
    'that is to go is removed by its node': { world: { content: aContent({ metadata: GOING }) }, want: [] },
    'that is to go is removed by any node where all reach it': {
      world: { nodeExists: false, content: aContent({ metadata: GOING, status: TAKEN }) },
      want: ['node-2'],
    },
    'that is to go says that the node is gone that has it': {
      world: {
        nodeExists: false,
        content: aContent({ metadata: GOING, status: { snapshotHandle: 'node/node-1/snapcontent-s1' } }),
      },
      want: ['SnapshotNodeGone'],
    },
    'that is to go says so also before it was taken': {
      world: { nodeExists: false, content: aContent({ metadata: GOING }) },
      want: ['SnapshotNodeGone'],
    },
    'that is to go says so only while its data are waited for': {
      world: { nodeExists: false, content: aContent({ metadata: { ...GOING, finalizers: ['other'] } }) },
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideSnapshotContent(aWorld(world))), want));
  }
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aContent, aVolume, NOW, SHARED } from '#controllers/shared/local-storage/testing/sample-storage.ts';
import {
  type VolumeSnapshotContentWorld,
  decideVolumeSnapshotContent,
} from '#controllers/volume-snapshot/decide-volume-snapshot-content.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

const ANYWHERE = aVolume({ storageClass: SHARED });
const GOING = { deletionTimestamp: NOW };
const TAKEN = { snapshotHandle: 'shared/snapcontent-s1', creationTime: 1 };

const aWorld = (more: Partial<VolumeSnapshotContentWorld> = {}): VolumeSnapshotContentWorld => ({
  content: aContent(),
  snapshotExists: true,
  nodeExists: true,
  copier: 'node-2',
  ...more,
});

/** Describes a plan: `node-2` for a new node, the verb of other changes, and the reasons of Events. */
function describePlan({ changes, events = [], requeueAfterMs }: Plan): string[] {
  const done = changes.map((change) => {
    if (change.do !== 'patch') return change.do;
    const { metadata } = change.patch.body as VolumeSnapshotContent;
    return metadata.annotations?.['selfsame.io/snapshot-node'] ?? 'nowhere';
  });
  return [...done, ...events.map(({ reason }) => reason), ...(requeueAfterMs === undefined ? [] : ['later'])];
}

describe('a VolumeSnapshotContent', () => {
  const cases: Record<string, { world: Partial<VolumeSnapshotContentWorld>; want: string[] }> = {
    'keeps its node': { world: {}, want: [] },
    'gets another node if its node is lost and the volume is shared': {
      world: { nodeExists: false, volume: ANYWHERE },
      want: ['node-2'],
    },
    'waits if no node can copy': {
      world: { nodeExists: false, volume: ANYWHERE, copier: undefined },
      want: ['later'],
    },
    'reports that the node of a node-local volume is lost': {
      world: { nodeExists: false, volume: aVolume() },
      want: ['SnapshotNodeGone'],
    },
    'needs no node once it is taken': {
      world: { nodeExists: false, volume: ANYWHERE, content: aContent({ status: TAKEN }) },
      want: [],
    },
    'is deleted if its VolumeSnapshot was removed by force': { world: { snapshotExists: false }, want: ['delete'] },
    'stays with the policy Retain': {
      world: { snapshotExists: false, content: aContent({ spec: { deletionPolicy: 'Retain' } }) },
      want: [],
    },
    'is ignored if it has another driver': {
      world: { snapshotExists: false, content: aContent({ spec: { driver: 'x' } }) },
      want: [],
    },
    'needs no node if a user created it for existing data': {
      world: { nodeExists: false, content: aContent({ spec: { source: { snapshotHandle: 'shared/x' } } }) },
      want: [],
    },
    'under deletion keeps its node': { world: { content: aContent({ metadata: GOING }) }, want: [] },
    'under deletion gets another node if its data is shared': {
      world: { nodeExists: false, content: aContent({ metadata: GOING, status: TAKEN }) },
      want: ['node-2'],
    },
    'under deletion reports that the node of its data is lost': {
      world: {
        nodeExists: false,
        content: aContent({ metadata: GOING, status: { snapshotHandle: 'node/node-1/snapcontent-s1' } }),
      },
      want: ['SnapshotNodeGone'],
    },
    'under deletion reports a lost node also before it was taken': {
      world: { nodeExists: false, content: aContent({ metadata: GOING }) },
      want: ['SnapshotNodeGone'],
    },
    'under deletion reports a lost node only while it has data': {
      world: { nodeExists: false, content: aContent({ metadata: { ...GOING, finalizers: ['other'] } }) },
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideVolumeSnapshotContent(aWorld(world))), want));
  }
});

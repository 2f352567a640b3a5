import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ClaimWorld, decideClaim } from '#controllers/storage/decide-claim.ts';
import { buildVolume } from '#controllers/storage/local-volume.ts';
import {
  aClaim,
  aClass,
  aContent,
  ASKED,
  aSnapshot,
  aVolume,
  deedsOf,
  GIB,
  NOW,
  SHARED,
} from '#controllers/storage/storage.fixture.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

const SELECTED = 'volume.kubernetes.io/selected-node';

const aWorld = (more: Partial<ClaimWorld> = {}): ClaimWorld => ({
  claim: aClaim(),
  storageClass: aClass(),
  selectedNodeExists: true,
  source: {},
  sourceNodeExists: true,
  now: NOW,
  ...more,
});
describe('a claim without a volume', () => {
  const cases: Record<string, { world: ClaimWorld; want: string[] }> = {
    'waits while it has no consumer': { world: aWorld(), want: [] },
    'gets one on the node that was selected': {
      world: aWorld({ claim: aClaim({ annotations: { ...ASKED, [SELECTED]: 'node-1' } }) }),
      want: ['create PersistentVolume'],
    },
    'waits for another node when the one that was selected is gone': {
      world: aWorld({
        claim: aClaim({ annotations: { ...ASKED, [SELECTED]: 'node-1' } }),
        selectedNodeExists: false,
      }),
      want: ['patch PersistentVolumeClaim'],
    },
    'gets one where its consumer is': { world: aWorld({ consumerNode: 'node-1' }), want: ['create PersistentVolume'] },
    'gets one at once where every node sees it': {
      world: aWorld({ storageClass: SHARED }),
      want: ['create PersistentVolume'],
    },
    'is told what is missing where the class neither waits for a consumer nor has it everywhere': {
      world: aWorld({ storageClass: aClass({ volumeBindingMode: 'Immediate' }) }),
      want: ['ProvisioningFailed'],
    },
    'gets no second one': { world: aWorld({ storageClass: SHARED, volume: aVolume() }), want: [] },
    'is left alone before the cluster asks us': {
      world: aWorld({ claim: aClaim({ annotations: {} }), storageClass: SHARED }),
      want: [],
    },
    'is left to others whose class it is': {
      world: aWorld({ storageClass: aClass({ provisioner: 'other' }), consumerNode: 'node-1' }),
      want: [],
    },
    'is refused for many writers on one node': {
      world: aWorld({ claim: aClaim({ spec: { accessModes: ['ReadWriteMany'] } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with a source': {
      world: aWorld({ claim: aClaim({ spec: { dataSource: { kind: 'x' } } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with a class that says what we do not know': {
      world: aWorld({ storageClass: aClass({ parameters: { scope: 'moon' } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with a parameter that we do not know': {
      world: aWorld({ storageClass: aClass({ parameters: { tier: 'fast' } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideClaim(world)), want));
  }
});

describe('the volume that is made', () => {
  it('is reserved for its claim and keeps what the claim and the class say', () => {
    const claim = aClaim({ spec: { volumeMode: 'Block' } });
    const { metadata, spec } = buildVolume(claim, aClass({ reclaimPolicy: 'Retain' }), 'node-1');
    assert.equal(metadata.name, 'pvc-u1');
    assert.deepEqual(metadata.annotations, {
      'pv.kubernetes.io/provisioned-by': 'selfsame.io/local',
      'selfsame.io/volume-node': 'node-1',
    });
    assert.ok(metadata.finalizers?.includes('selfsame.io/volume-data'));
    assert.deepEqual(
      [spec.volumeMode, spec.persistentVolumeReclaimPolicy, spec.capacity, spec.claimRef?.uid],
      ['Block', 'Retain', { storage: '1Gi' }, 'u1'],
    );
  });
  it('has no node where every node sees it', () => {
    const { metadata, spec } = buildVolume(aClaim(), SHARED, 'node-1');
    assert.equal(metadata.annotations?.['selfsame.io/volume-node'], undefined);
    assert.deepEqual(spec.csi?.volumeAttributes, { scope: 'shared' });
  });
});

describe('a claim that asks for more', () => {
  const pending = [{ type: 'FileSystemResizePending', status: 'True' as const, lastTransitionTime: NOW }];
  const bound = (size: string, has: string, conditions?: typeof pending) =>
    aClaim({
      spec: { volumeName: 'pvc-u1', resources: { requests: { storage: size } } },
      status: { phase: 'Bound', capacity: { storage: has }, ...(conditions ? { conditions } : {}) },
    });
  const VOLUME = 'patch PersistentVolume';
  const CLAIM = 'patch PersistentVolumeClaim';
  const cases: Record<string, { world: Partial<ClaimWorld>; want: string[] }> = {
    'gets it at once where nobody uses it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume() },
      want: [VOLUME, CLAIM],
    },
    'waits for its node where a pod uses it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume(), consumerNode: 'node-1' },
      want: [VOLUME, CLAIM],
    },
    'is told once that it waits': {
      world: {
        claim: bound('2Gi', '1Gi', pending),
        volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }),
        consumerNode: 'node-1',
      },
      want: [],
    },
    'is done when its node says so': {
      world: {
        claim: bound('2Gi', '2Gi', pending),
        volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }),
        consumerNode: 'node-1',
      },
      want: [CLAIM],
    },
    'is done when its pod is gone': {
      world: { claim: bound('2Gi', '1Gi', pending), volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }) },
      want: [CLAIM],
    },
    'needs a class that allows it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume(), storageClass: aClass({ allowVolumeExpansion: false }) },
      want: ['VolumeResizeFailed'],
    },
    'waits while a guest takes its data to another node': {
      world: {
        claim: bound('2Gi', '1Gi'),
        volume: aVolume({
          metadata: { annotations: { ...aVolume().metadata.annotations, 'selfsame.io/incoming-node': 'node-2' } },
        }),
        consumerNode: 'node-1',
      },
      want: [],
    },
    'asks for nothing that it has': { world: { claim: bound('1Gi', '1Gi'), volume: aVolume() }, want: [] },
    'gets nothing from the volume of another': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume({ metadata: { annotations: {} } }) },
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deedsOf(decideClaim(aWorld(world))), want));
  }
});

describe('a claim that is made from a VolumeSnapshot', () => {
  const HERE = 'node/node-2/snapcontent-s1';
  const ANYWHERE = 'shared/snapcontent-s1';
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' };
  const bound = { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: true };
  const taken = { snapshotHandle: HERE, readyToUse: true, creationTime: 1, restoreSize: GIB };

  interface Wish {
    readonly claim?: Partial<PersistentVolumeClaim['spec']>;
    readonly annotations?: Record<string, string>;
    readonly snapshot?: { status?: VolumeSnapshot['status']; metadata?: Partial<ObjectMeta> } | null;
    readonly content?: {
      status?: VolumeSnapshotContent['status'];
      spec?: Partial<VolumeSnapshotContent['spec']>;
    } | null;
    readonly world?: Partial<ClaimWorld>;
  }

  const worldOf = ({ claim, annotations = {}, snapshot = {}, content = {}, world }: Wish): ClaimWorld =>
    aWorld({
      claim: aClaim({ spec: { dataSource, dataSourceRef: dataSource, ...claim }, annotations }),
      source: {
        ...(snapshot === null ? {} : { snapshot: aSnapshot({ status: bound, ...snapshot }) }),
        ...(content === null ? {} : { content: aContent({ status: taken, ...content }) }),
      },
      copier: 'node-9',
      ...world,
    });

  const made: Record<string, { wish: Wish; want: { node?: string; copyNode?: string; handle: string } | undefined }> = {
    'lies where the snapshot lies, before anybody uses it': {
      wish: {},
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'lies where the snapshot lies, whatever node was selected': {
      wish: { annotations: { ...ASKED, [SELECTED]: 'node-1' } },
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'is shared where its class says so, and copied where the snapshot lies': {
      wish: { annotations: ASKED, world: { storageClass: SHARED } },
      want: { copyNode: 'node-2', handle: HERE },
    },
    'is copied by any node where all reach both': {
      wish: {
        annotations: ASKED,
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
        world: { storageClass: SHARED },
      },
      want: { copyNode: 'node-9', handle: ANYWHERE },
    },
    'is made also where no node can copy yet': {
      wish: {
        annotations: ASKED,
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
        world: { storageClass: SHARED, copier: undefined },
      },
      want: { handle: ANYWHERE },
    },
    'waits for its consumer where the snapshot can be read everywhere': {
      wish: { content: { status: { ...taken, snapshotHandle: ANYWHERE } } },
      want: undefined,
    },
    'is copied on the node of its consumer then': {
      wish: {
        annotations: { ...ASKED, [SELECTED]: 'node-1' },
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
      },
      want: { node: 'node-1', copyNode: 'node-1', handle: ANYWHERE },
    },
    'may be larger than the snapshot': {
      wish: { claim: { resources: { requests: { storage: '2Gi' } } } },
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'waits while the snapshot is not ready': { wish: { snapshot: { status: { readyToUse: false } } }, want: undefined },
    'waits while the content is not seen': { wish: { content: null }, want: undefined },
    'waits while the content says that it is not ready': {
      wish: { content: { status: { ...taken, readyToUse: false } } },
      want: undefined,
    },
    'is made also from one that is to go, when it was claimed before': {
      wish: {
        snapshot: {
          metadata: {
            deletionTimestamp: NOW,
            finalizers: ['snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection'],
          },
        },
      },
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
  };
  for (const [name, { wish, want }] of Object.entries(made)) {
    it(name, () => {
      const { changes, events } = decideClaim(worldOf(wish));
      assert.deepEqual(events ?? [], []);
      const [change] = changes;
      if (want === undefined) return assert.equal(change, undefined);
      assert.ok(change?.do === 'create');
      const { metadata, spec } = change.object as PersistentVolume;
      const { volumeAttributes } = spec.csi ?? {};
      assert.deepEqual(
        {
          node: volumeAttributes?.['node'],
          copyNode: metadata.annotations?.['selfsame.io/volume-copy-node'],
          handle: volumeAttributes?.['snapshot'],
        },
        { node: undefined, copyNode: undefined, ...want },
      );
      assert.ok(metadata.finalizers?.includes('selfsame.io/volume-copy'));
    });
  }

  const refused: Record<string, { wish: Wish; want: RegExp }> = {
    'is refused from another claim': {
      wish: { claim: { dataSource: { kind: 'PersistentVolumeClaim', name: 'x' }, dataSourceRef: undefined } },
      want: /claim\.spec\.dataSource "PersistentVolumeClaim\/x" is not supported; only VolumeSnapshots$/,
    },
    'is refused from another namespace': {
      wish: { claim: { dataSource: undefined, dataSourceRef: { ...dataSource, namespace: 'other' } } },
      want: /VolumeSnapshot\/other\/snap" is not supported/,
    },
    'is refused from what is not there': { wish: { snapshot: null, content: null }, want: /"snap" not found$/ },
    'is refused from what is to go': {
      wish: { snapshot: { metadata: { deletionTimestamp: NOW } } },
      want: /"snap" is currently being deleted$/,
    },
    'is refused from the content of another': {
      wish: { content: { spec: { volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'other' } } } },
      want: /"snapcontent-s1" is not the one of VolumeSnapshot "snap"$/,
    },
    'is refused from another driver': { wish: { content: { spec: { driver: 'x' } } }, want: /is not the one of/ },
    'is refused from a handle that leads elsewhere': {
      wish: { content: { status: { ...taken, snapshotHandle: 'shared/../../etc' } } },
      want: /has no handle of local\.selfsame\.io$/,
    },
    'is refused when it is smaller': {
      wish: { content: { status: { ...taken, restoreSize: GIB + 1 } } },
      want: /requested volume size 1Gi is less than the size 1073741825 for the source snapshot "snap"$/,
    },
    'is refused in another mode': {
      wish: { claim: { volumeMode: 'Block' } },
      want: /volumeMode is Block, but VolumeSnapshot "snap" is of a volume of mode Filesystem$/,
    },
    'waits for the node that holds the snapshot': {
      wish: { world: { sourceNodeExists: false } },
      want: /node node-2 that holds the snapshot no longer exists$/,
    },
  };
  for (const [name, { wish, want }] of Object.entries(refused)) {
    it(name, () => {
      const { changes, events = [] } = decideClaim(worldOf(wish));
      assert.deepEqual(changes, []);
      assert.deepEqual(
        events.map(({ reason }) => reason),
        ['ProvisioningFailed'],
      );
      assert.match(events[0]?.message ?? '', want);
    });
  }
});

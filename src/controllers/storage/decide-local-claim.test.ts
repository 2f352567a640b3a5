import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type LocalClaimWorld, decideLocalClaim } from '#controllers/storage/decide-local-claim.ts';
import { buildLocalVolume } from '#controllers/shared/local-storage/local-volume.ts';
import {
  aClaim,
  aClass,
  aContent,
  PROVISIONER,
  aSnapshot,
  aVolume,
  describePlan,
  GIB,
  NOW,
  SHARED,
} from '#controllers/shared/local-storage/testing/sample-storage.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

const SELECTED = 'volume.kubernetes.io/selected-node';

const aWorld = (more: Partial<LocalClaimWorld> = {}): LocalClaimWorld => ({
  claim: aClaim(),
  storageClass: aClass(),
  selectedNodeExists: true,
  source: {},
  sourceNodeExists: true,
  sizes: new Map(),
  now: NOW,
  ...more,
});
describe('a claim without a volume', () => {
  const cases: Record<string, { world: LocalClaimWorld; want: string[] }> = {
    'waits for a consumer': { world: aWorld(), want: [] },
    'gets a volume on the selected node': {
      world: aWorld({ claim: aClaim({ annotations: { ...PROVISIONER, [SELECTED]: 'node-1' } }) }),
      want: ['create PersistentVolume'],
    },
    'waits for another node if the selected one does not exist': {
      world: aWorld({
        claim: aClaim({ annotations: { ...PROVISIONER, [SELECTED]: 'node-1' } }),
        selectedNodeExists: false,
      }),
      want: ['patch PersistentVolumeClaim'],
    },
    'gets a volume on the node of its consumer': {
      world: aWorld({ consumerNode: 'node-1' }),
      want: ['create PersistentVolume'],
    },
    'gets a shared volume at once': {
      world: aWorld({ storageClass: SHARED }),
      want: ['create PersistentVolume'],
    },
    'fails if a node-local class does not wait for a consumer': {
      world: aWorld({ storageClass: aClass({ volumeBindingMode: 'Immediate' }) }),
      want: ['ProvisioningFailed'],
    },
    'gets no second volume': { world: aWorld({ storageClass: SHARED, volume: aVolume() }), want: [] },
    'is ignored before the cluster requests a volume': {
      world: aWorld({ claim: aClaim({ annotations: {} }), storageClass: SHARED }),
      want: [],
    },
    'is ignored with a class of another provisioner': {
      world: aWorld({ storageClass: aClass({ provisioner: 'other' }), consumerNode: 'node-1' }),
      want: [],
    },
    'is refused with ReadWriteMany and a node-local class': {
      world: aWorld({ claim: aClaim({ spec: { accessModes: ['ReadWriteMany'] } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with an unsupported source': {
      world: aWorld({ claim: aClaim({ spec: { dataSource: { kind: 'x' } } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with a class of unknown scope': {
      world: aWorld({ storageClass: aClass({ parameters: { scope: 'moon' } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
    'is refused with an unknown parameter': {
      world: aWorld({ storageClass: aClass({ parameters: { tier: 'fast' } }), consumerNode: 'node-1' }),
      want: ['ProvisioningFailed'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideLocalClaim(world)), want));
  }
});

describe('a claim that is larger than the storage', () => {
  const size = (gib: number) => ({ nodeBytes: gib * GIB, sharedBytes: 2 * gib * GIB });
  const sizes = new Map([
    ['node-1', size(10)],
    ['node-2', size(100)],
  ]);
  const huge = aClaim({ spec: { resources: { requests: { storage: '100Ti' } } } });
  const messageOf = (world: Partial<LocalClaimWorld>) =>
    decideLocalClaim(aWorld({ sizes, ...world })).events?.map(({ reason, message }) => `${reason}: ${message}`);

  it('stays unbound, and an Event names the largest volume of its node', () => {
    assert.deepEqual(messageOf({ claim: huge, consumerNode: 'node-1' }), [
      'ProvisioningFailed: failed to provision volume with StorageClass "local": it requests 100Ti, but node node-1 can hold at most 10Gi; request less, or add storage',
    ]);
  });
  it('stays unbound if no node has been selected and none is large enough', () => {
    assert.deepEqual(messageOf({ claim: huge }), [
      'ProvisioningFailed: failed to provision volume with StorageClass "local": it requests 100Ti, but no node can hold more than 100Gi; request less, or add storage',
    ]);
  });
  it('stays unbound on shared storage', () => {
    assert.match(String(messageOf({ claim: huge, storageClass: SHARED })), /the shared storage can hold at most 200Gi/);
  });
  it('gets a volume on a node that is large enough, or that does not report its size', () => {
    const claim = aClaim({ spec: { resources: { requests: { storage: '50Gi' } } } });
    const planOn = (consumerNode: string) => describePlan(decideLocalClaim(aWorld({ claim, sizes, consumerNode })));
    assert.deepEqual(planOn('node-1'), ['ProvisioningFailed']);
    assert.deepEqual(planOn('node-2'), ['create PersistentVolume']);
    assert.deepEqual(planOn('node-3'), ['create PersistentVolume']);
  });
});

describe('a new volume', () => {
  it('is reserved for its claim and has the settings of the claim and the class', () => {
    const claim = aClaim({ spec: { volumeMode: 'Block' } });
    const { metadata, spec } = buildLocalVolume(claim, aClass({ reclaimPolicy: 'Retain' }), 'node-1');
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
  it('has no node if it is shared', () => {
    const { metadata, spec } = buildLocalVolume(aClaim(), SHARED, 'node-1');
    assert.equal(metadata.annotations?.['selfsame.io/volume-node'], undefined);
    assert.deepEqual(spec.csi?.volumeAttributes, { scope: 'shared' });
  });
});

describe('a claim that requests more storage', () => {
  const pending = [{ type: 'FileSystemResizePending', status: 'True' as const, lastTransitionTime: NOW }];
  const bound = (size: string, has: string, conditions?: typeof pending) =>
    aClaim({
      spec: { volumeName: 'pvc-u1', resources: { requests: { storage: size } } },
      status: { phase: 'Bound', capacity: { storage: has }, ...(conditions ? { conditions } : {}) },
    });
  const VOLUME = 'patch PersistentVolume';
  const CLAIM = 'patch PersistentVolumeClaim';
  const cases: Record<string, { world: Partial<LocalClaimWorld>; want: string[] }> = {
    'gets it at once if no pod uses it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume() },
      want: [VOLUME, CLAIM],
    },
    'waits for the node if a pod uses it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume(), consumerNode: 'node-1' },
      want: [VOLUME, CLAIM],
    },
    'is marked as pending once': {
      world: {
        claim: bound('2Gi', '1Gi', pending),
        volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }),
        consumerNode: 'node-1',
      },
      want: [],
    },
    'is done when the node reports the new size': {
      world: {
        claim: bound('2Gi', '2Gi', pending),
        volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }),
        consumerNode: 'node-1',
      },
      want: [CLAIM],
    },
    'is done when the pod has ended': {
      world: { claim: bound('2Gi', '1Gi', pending), volume: aVolume({ spec: { capacity: { storage: '2Gi' } } }) },
      want: [CLAIM],
    },
    'fails if the class does not allow it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume(), storageClass: aClass({ allowVolumeExpansion: false }) },
      want: ['VolumeResizeFailed'],
    },
    'waits while a guest moves the data to another node': {
      world: {
        claim: bound('2Gi', '1Gi'),
        volume: aVolume({
          metadata: { annotations: { ...aVolume().metadata.annotations, 'selfsame.io/incoming-node': 'node-2' } },
        }),
        consumerNode: 'node-1',
      },
      want: [],
    },
    'is unchanged if it has the size already': { world: { claim: bound('1Gi', '1Gi'), volume: aVolume() }, want: [] },
    'is unchanged if the volume has another provisioner': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume({ metadata: { annotations: {} } }) },
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describePlan(decideLocalClaim(aWorld(world))), want));
  }
});

describe('a claim with a VolumeSnapshot as its source', () => {
  const HERE = 'node/node-2/snapcontent-s1';
  const ANYWHERE = 'shared/snapcontent-s1';
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' };
  const bound = { boundVolumeSnapshotContentName: 'snapcontent-s1', readyToUse: true };
  const taken = { snapshotHandle: HERE, readyToUse: true, creationTime: 1, restoreSize: GIB };

  interface Overrides {
    readonly claim?: Partial<PersistentVolumeClaim['spec']>;
    readonly annotations?: Record<string, string>;
    readonly snapshot?: { status?: VolumeSnapshot['status']; metadata?: Partial<ObjectMeta> } | null;
    readonly content?: {
      status?: VolumeSnapshotContent['status'];
      spec?: Partial<VolumeSnapshotContent['spec']>;
    } | null;
    readonly world?: Partial<LocalClaimWorld>;
  }

  const worldOf = ({ claim, annotations = {}, snapshot = {}, content = {}, world }: Overrides): LocalClaimWorld =>
    aWorld({
      claim: aClaim({ spec: { dataSource, dataSourceRef: dataSource, ...claim }, annotations }),
      source: {
        ...(snapshot === null ? {} : { snapshot: aSnapshot({ status: bound, ...snapshot }) }),
        ...(content === null ? {} : { content: aContent({ status: taken, ...content }) }),
      },
      copier: 'node-9',
      ...world,
    });

  const created: Record<
    string,
    { overrides: Overrides; want: { node?: string; copyNode?: string; handle: string } | undefined }
  > = {
    'is on the node of the snapshot before it has a consumer': {
      overrides: {},
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'is on the node of the snapshot even if another node was selected': {
      overrides: { annotations: { ...PROVISIONER, [SELECTED]: 'node-1' } },
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'is copied on the node of the snapshot to a shared volume': {
      overrides: { annotations: PROVISIONER, world: { storageClass: SHARED } },
      want: { copyNode: 'node-2', handle: HERE },
    },
    'is copied by any node if snapshot and volume are shared': {
      overrides: {
        annotations: PROVISIONER,
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
        world: { storageClass: SHARED },
      },
      want: { copyNode: 'node-9', handle: ANYWHERE },
    },
    'gets a volume also if no node can copy yet': {
      overrides: {
        annotations: PROVISIONER,
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
        world: { storageClass: SHARED, copier: undefined },
      },
      want: { handle: ANYWHERE },
    },
    'waits for its consumer if the snapshot is shared': {
      overrides: { content: { status: { ...taken, snapshotHandle: ANYWHERE } } },
      want: undefined,
    },
    'is copied on the node of its consumer if the snapshot is shared': {
      overrides: {
        annotations: { ...PROVISIONER, [SELECTED]: 'node-1' },
        content: { status: { ...taken, snapshotHandle: ANYWHERE } },
      },
      want: { node: 'node-1', copyNode: 'node-1', handle: ANYWHERE },
    },
    'may be larger than the snapshot': {
      overrides: { claim: { resources: { requests: { storage: '2Gi' } } } },
      want: { node: 'node-2', copyNode: 'node-2', handle: HERE },
    },
    'waits while the snapshot is not ready': {
      overrides: { snapshot: { status: { readyToUse: false } } },
      want: undefined,
    },
    'waits while the content does not exist': { overrides: { content: null }, want: undefined },
    'waits while the content is not ready': {
      overrides: { content: { status: { ...taken, readyToUse: false } } },
      want: undefined,
    },
    'gets a volume from a snapshot under deletion if the claim was created before': {
      overrides: {
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
  for (const [name, { overrides, want }] of Object.entries(created)) {
    it(name, () => {
      const { changes, events } = decideLocalClaim(worldOf(overrides));
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

  const refused: Record<string, { overrides: Overrides; want: RegExp }> = {
    'is refused with another claim as its source': {
      overrides: { claim: { dataSource: { kind: 'PersistentVolumeClaim', name: 'x' }, dataSourceRef: undefined } },
      want: /claim\.spec\.dataSource "PersistentVolumeClaim\/x" is not supported; only VolumeSnapshots are$/,
    },
    'is refused with a snapshot in another namespace': {
      overrides: { claim: { dataSource: undefined, dataSourceRef: { ...dataSource, namespace: 'other' } } },
      want: /VolumeSnapshot\/other\/snap" is not supported/,
    },
    'is refused with a snapshot that does not exist': {
      overrides: { snapshot: null, content: null },
      want: /"snap" not found$/,
    },
    'is refused with a snapshot under deletion': {
      overrides: { snapshot: { metadata: { deletionTimestamp: NOW } } },
      want: /"snap" is currently being deleted$/,
    },
    'is refused with the content of another snapshot': {
      overrides: { content: { spec: { volumeSnapshotRef: { namespace: 'default', name: 'snap', uid: 'other' } } } },
      want: /"snapcontent-s1" does not belong to VolumeSnapshot "snap"$/,
    },
    'is refused with another driver': { overrides: { content: { spec: { driver: 'x' } } }, want: /does not belong to/ },
    'is refused with an invalid handle': {
      overrides: { content: { status: { ...taken, snapshotHandle: 'shared/../../etc' } } },
      want: /has no handle of local\.selfsame\.io$/,
    },
    'is refused if it is smaller than the snapshot': {
      overrides: { content: { status: { ...taken, restoreSize: GIB + 1 } } },
      want: /requested volume size 1Gi is less than the size 1073741825 for the source snapshot "snap"$/,
    },
    'is refused with another volume mode': {
      overrides: { claim: { volumeMode: 'Block' } },
      want: /volumeMode is Block, but VolumeSnapshot "snap" has the mode Filesystem$/,
    },
    'fails and retries if the node of the snapshot does not exist': {
      overrides: { world: { sourceNodeExists: false } },
      want: /node node-2, which has the snapshot, does not exist any more$/,
    },
  };
  for (const [name, { overrides, want }] of Object.entries(refused)) {
    it(name, () => {
      const { changes, events = [] } = decideLocalClaim(worldOf(overrides));
      assert.deepEqual(changes, []);
      assert.deepEqual(
        events.map(({ reason }) => reason),
        ['ProvisioningFailed'],
      );
      assert.match(events[0]?.message ?? '', want);
    });
  }
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ClaimWorld, decideClaim } from '#controllers/storage/decide-claim.ts';
import { decideVolume } from '#controllers/storage/decide-volume.ts';
import { buildVolume } from '#controllers/storage/local-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Plan } from '#runtime/plan.ts';

const NOW = '2030-01-01T00:00:00Z';
const PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
const SELECTED = 'volume.kubernetes.io/selected-node';

type Claim = Stored<PersistentVolumeClaim>;

interface ClaimWish {
  readonly spec?: Partial<PersistentVolumeClaim['spec']>;
  readonly status?: PersistentVolumeClaim['status'];
  readonly annotations?: Record<string, string>;
}

function aClaim({ spec, status, annotations = { [PROVISIONER]: 'selfsame.io/local' } }: ClaimWish = {}): Claim {
  const resources = { requests: { storage: '1Gi' } };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace: 'default',
      name: 'disk',
      uid: 'u1',
      resourceVersion: '5',
      creationTimestamp: NOW,
      annotations,
    },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources, ...spec },
    status: status ?? { phase: 'Pending' },
  };
}

function aClass(more: Partial<StorageClass> = {}): Stored<StorageClass> {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: 'selfsame.io/local',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
    parameters: { scope: 'node' },
    ...more,
    metadata: { name: 'local', uid: 'c', resourceVersion: '1', creationTimestamp: NOW },
  };
}

const SHARED = aClass({ volumeBindingMode: 'Immediate', parameters: { scope: 'shared' } });

function aVolume(storage = '1Gi', more: Partial<PersistentVolume> = {}): Stored<PersistentVolume> {
  const { metadata, ...rest } = buildVolume(aClaim(), aClass(), 'node-1');
  rest.spec.capacity = { storage };
  const stored = { name: 'pvc-u1', uid: 'v', resourceVersion: '1', creationTimestamp: NOW };
  return { ...rest, ...more, metadata: { ...metadata, ...stored, ...more.metadata } };
}

const aWorld = (more: Partial<ClaimWorld> = {}): ClaimWorld => ({
  claim: aClaim(),
  storageClass: aClass(),
  selectedNodeExists: true,
  now: NOW,
  ...more,
});
const deeds = ({ changes, events = [] }: Plan) => [
  ...changes.map((change) => `${change.do} ${change.type.kind}`),
  ...events.map(({ reason }) => reason),
];

describe('a claim without a volume', () => {
  const cases: Record<string, { world: ClaimWorld; want: string[] }> = {
    'waits while it has no consumer': { world: aWorld(), want: [] },
    'gets one on the node that was selected': {
      world: aWorld({ claim: aClaim({ annotations: { [PROVISIONER]: 'selfsame.io/local', [SELECTED]: 'node-1' } }) }),
      want: ['create PersistentVolume'],
    },
    'waits for another node when the one that was selected is gone': {
      world: aWorld({
        claim: aClaim({ annotations: { [PROVISIONER]: 'selfsame.io/local', [SELECTED]: 'node-1' } }),
        selectedNodeExists: false,
      }),
      want: ['patch PersistentVolumeClaim'],
    },
    'gets one where its consumer is': { world: aWorld({ consumerNode: 'node-1' }), want: ['create PersistentVolume'] },
    'gets one at once where every node sees it': {
      world: aWorld({ storageClass: SHARED }),
      want: ['create PersistentVolume'],
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
    it(name, () => assert.deepEqual(deeds(decideClaim(world)), want));
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
      world: { claim: bound('2Gi', '1Gi', pending), volume: aVolume('2Gi'), consumerNode: 'node-1' },
      want: [],
    },
    'is done when its node says so': {
      world: { claim: bound('2Gi', '2Gi', pending), volume: aVolume('2Gi'), consumerNode: 'node-1' },
      want: [CLAIM],
    },
    'is done when its pod is gone': {
      world: { claim: bound('2Gi', '1Gi', pending), volume: aVolume('2Gi') },
      want: [CLAIM],
    },
    'needs a class that allows it': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume(), storageClass: aClass({ allowVolumeExpansion: false }) },
      want: ['VolumeResizeFailed'],
    },
    'asks for nothing that it has': { world: { claim: bound('1Gi', '1Gi'), volume: aVolume() }, want: [] },
    'gets nothing from the volume of another': {
      world: { claim: bound('2Gi', '1Gi'), volume: aVolume('1Gi', { metadata: { annotations: {} } }) },
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deeds(decideClaim(aWorld(world))), want));
  }
});

describe('a volume', () => {
  const cases: Record<string, { volume: Stored<PersistentVolume>; want: string[] }> = {
    'is deleted when its claim let it go': {
      volume: aVolume('1Gi', { status: { phase: 'Released' } }),
      want: ['delete PersistentVolume'],
    },
    'is deleted once': {
      volume: aVolume('1Gi', { status: { phase: 'Released' }, metadata: { deletionTimestamp: NOW } }),
      want: [],
    },
    'stays while it is bound': { volume: aVolume('1Gi', { status: { phase: 'Bound' } }), want: [] },
    'stays where somebody wants to keep it': {
      volume: aVolume('1Gi', {
        status: { phase: 'Released' },
        spec: { ...aVolume().spec, persistentVolumeReclaimPolicy: 'Retain' },
      }),
      want: [],
    },
    'of others is left to them': {
      volume: aVolume('1Gi', { status: { phase: 'Released' }, metadata: { annotations: {} } }),
      want: [],
    },
  };
  for (const [name, { volume, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(deeds(decideVolume({ volume, homeExists: true })), want));
  }

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
      const volume = aVolume('1Gi', { status: { phase: 'Released' }, metadata: changed });
      const decided = deeds(decideVolume({ volume, homeExists: false }));
      assert.deepEqual(
        decided.filter((deed) => !deed.startsWith('delete')),
        want,
      );
    });
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { decideVolume, grownClaimStatus, hasGrown } from '#node/agent/decide-volume.ts';

interface Facts {
  readonly metadata?: ObjectMeta;
  readonly spec?: Partial<PersistentVolume['spec']>;
  readonly phase?: 'Bound' | 'Released' | 'Available';
}

const OURS = { 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local' };
const DELETED = {
  deletionTimestamp: '2030-01-01T00:00:00Z',
  finalizers: ['selfsame.io/volume-data'],
  annotations: OURS,
};
const at = (node: string) => ({ annotations: { ...OURS, 'selfsame.io/volume-node': node } });

function aVolume({ metadata, spec, phase = 'Released' }: Facts = {}): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv', uid: 'u', resourceVersion: '1', creationTimestamp: '2030-01-01T00:00:00Z', ...metadata },
    spec: {
      capacity: { storage: '2Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: 'local.selfsame.io', volumeHandle: 'pv' },
      ...spec,
    },
    status: { phase },
  };
}

const BOTH = ['removeData', 'dropFinalizer'];
const cases: Record<string, { volume: Stored<PersistentVolume>; want: string[] }> = {
  'a volume that is wanted': { volume: aVolume({ metadata: { ...at('n1') } }), want: [] },
  'a deleted one that lies here': { volume: aVolume({ metadata: { ...DELETED, ...at('n1') } }), want: BOTH },
  'a deleted one that lies elsewhere': { volume: aVolume({ metadata: { ...DELETED, ...at('n2') } }), want: [] },
  'a deleted one that all nodes reach': { volume: aVolume({ metadata: DELETED }), want: BOTH },
  'a deleted one under a claim': { volume: aVolume({ metadata: DELETED, phase: 'Bound' }), want: [] },
  'a deleted one that Kubernetes protects': {
    volume: aVolume({ metadata: { ...DELETED, finalizers: [...DELETED.finalizers, 'kubernetes.io/pv-protection'] } }),
    want: [],
  },
  'a deleted one that is still being filled': {
    volume: aVolume({ metadata: { ...DELETED, finalizers: [...DELETED.finalizers, 'selfsame.io/volume-copy'] } }),
    want: [],
  },
  'a deleted one whose data are to be retained': {
    volume: aVolume({ metadata: DELETED, spec: { persistentVolumeReclaimPolicy: 'Retain' } }),
    want: ['dropFinalizer'],
  },
  'a deleted one that is done': { volume: aVolume({ metadata: { ...DELETED, finalizers: ['x.io/other'] } }), want: [] },
  "a deleted one of somebody else's": {
    volume: aVolume({ metadata: { ...DELETED, annotations: {} } }),
    want: [],
  },
};

for (const [sentence, { volume, want }] of Object.entries(cases)) {
  test(sentence, () =>
    assert.deepEqual(
      decideVolume(volume, 'n1').map((action) => action.do),
      want,
    ),
  );
}

const aClaim = (storage?: string): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c' },
  spec: {},
  status: {
    phase: 'Bound',
    ...(storage === undefined ? {} : { capacity: { storage } }),
    conditions: [
      { type: 'FileSystemResizePending', status: 'True' },
      { type: 'Other', status: 'True' },
    ],
  },
});

test('a volume has grown when its claim says less', () => {
  assert.equal(hasGrown(aVolume(), aClaim('1Gi')), true);
  assert.equal(hasGrown(aVolume(), aClaim('2048Mi')), false);
  assert.equal(hasGrown(aVolume(), aClaim('3Gi')), false);
  assert.equal(hasGrown(aVolume(), aClaim()), false);
});

test('a claim that has been told waits for nothing more', () => {
  assert.deepEqual(grownClaimStatus(aVolume(), aClaim('1Gi')), {
    phase: 'Bound',
    capacity: { storage: '2Gi' },
    conditions: [{ type: 'Other', status: 'True' }],
  });
});

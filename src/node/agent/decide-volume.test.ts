import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import {
  decideVolume,
  grownClaimStatus,
  hasGrown,
  isGuestMoving,
  isOnTheMove,
  standsOn,
} from '#node/agent/decide-volume.ts';
import type { DiskDevice, DomainDefinition } from '#node/definition/domain-definition.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';

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

const INCOMING = { 'selfsame.io/incoming-node': 'n2' };
const left = (on: string, home: string, more: object = {}) => ({
  annotations: { ...at(home).annotations, 'selfsame.io/leftover-node': on, ...more },
});

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
  'one of which a copy is left here': { volume: aVolume({ metadata: left('n1', 'n2') }), want: ['removeLeftover'] },
  'a deleted one of which a copy is left here': {
    volume: aVolume({ metadata: { ...DELETED, ...left('n1', 'n2') } }),
    want: ['removeLeftover'],
  },
  'one of which a copy is left elsewhere': { volume: aVolume({ metadata: left('n3', 'n2') }), want: [] },
  'one that lies here, whatever else is said': { volume: aVolume({ metadata: left('n1', 'n1') }), want: [] },
  'one that comes here again': {
    volume: aVolume({ metadata: left('n1', 'n2', { 'selfsame.io/incoming-node': 'n1' }) }),
    want: [],
  },
  "one of somebody else's with our words": {
    volume: aVolume({
      metadata: { annotations: { 'selfsame.io/leftover-node': 'n1', 'selfsame.io/volume-node': 'n2' } },
    }),
    want: [],
  },
  'a deleted one that lies here, while a copy is left elsewhere': {
    volume: aVolume({ metadata: { ...DELETED, ...left('n2', 'n1') } }),
    want: [],
  },
  'a deleted one that lies here, while it is on its way': {
    volume: aVolume({ metadata: { ...DELETED, annotations: { ...at('n1').annotations, ...INCOMING } } }),
    want: [],
  },
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

const paths: Record<string, { path: string | undefined; want: boolean }> = {
  'a file of it': { path: '/var/lib/node-1/volumes/pv/disk.img', want: true },
  'a file of another whose name begins so': { path: '/var/lib/node-1/volumes/pv-2/disk.img', want: false },
  'a block device': { path: '/dev/loop3', want: false },
  'no medium': { path: undefined, want: false },
};
for (const [sentence, { path, want }] of Object.entries(paths)) {
  test(`a guest with ${sentence} ${want ? 'stands' : 'does not stand'} on the volume`, () => {
    const source = path === undefined ? undefined : { path, format: 'raw' as const };
    const disk = { type: 'disk', id: 'disk-root', source } as DiskDevice;
    assert.equal(standsOn({ devices: [disk] } as Partial<DomainDefinition> as DomainDefinition, aVolume()), want);
  });
}

const moves: Record<string, { migration?: DomainMigration; state?: object; want: boolean }> = {
  'a guest that never went anywhere stays': { want: false },
  'one that its controller has told to go moves': { state: { migrationUid: 'm' }, want: true },
  'one whose move is over stays': { state: { migrationUid: 'm', completed: true }, want: false },
  'one that is being sent moves, whatever is told': {
    migration: { uid: 'm', peer: 'n2', role: 'source', step: 'sending' },
    want: true,
  },
  'one that was taken back stays': {
    migration: { uid: 'm', peer: 'n2', role: 'source', step: 'aborted' },
    want: false,
  },
  'one that is waited for moves': { migration: { uid: 'm', peer: 'n2', role: 'target', step: 'waiting' }, want: true },
  'one that has arrived stays': { migration: { uid: 'm', peer: 'n2', role: 'target', step: 'arrived' }, want: false },
};
for (const [sentence, { migration, state, want }] of Object.entries(moves)) {
  test(sentence, () => {
    const domain = { id: 'd', ...(migration && { migration }) } as Domain;
    const vmi = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: {}, spec: { domain: {} } };
    assert.equal(isGuestMoving(domain, { ...vmi, status: { migrationState: state } }), want);
  });
}

test('a volume is on the move as long as another node may hold a copy', () => {
  assert.equal(isOnTheMove(aVolume({ metadata: at('n1') })), false);
  assert.equal(isOnTheMove(aVolume({ metadata: { annotations: INCOMING } })), true);
});

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

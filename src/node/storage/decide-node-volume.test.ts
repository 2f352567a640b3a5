import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import {
  decideNodeVolume,
  grownClaimStatus,
  hasGrown,
  isGuestMoving,
  isVolumeMoving,
  usesVolume,
} from '#node/storage/decide-node-volume.ts';
import type { DiskDevice, DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration } from '#node/hypervisor/migration.ts';

interface Facts {
  readonly metadata?: ObjectMeta;
  readonly spec?: Partial<PersistentVolume['spec']>;
  readonly phase?: 'Bound' | 'Released' | 'Available';
}

const PROVISIONED = { 'pv.kubernetes.io/provisioned-by': 'selfsame.io/local' };
const DELETED = {
  deletionTimestamp: '2030-01-01T00:00:00Z',
  finalizers: ['selfsame.io/volume-data'],
  annotations: PROVISIONED,
};
const at = (node: string) => ({ annotations: { ...PROVISIONED, 'selfsame.io/volume-node': node } });

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
const left = (on: string, dataNode: string, more: object = {}) => ({
  annotations: { ...at(dataNode).annotations, 'selfsame.io/leftover-node': on, ...more },
});

const BOTH = ['removeData', 'removeFinalizer'];
const cases: Record<string, { volume: Stored<PersistentVolume>; want: string[] }> = {
  'does nothing for a volume that is not deleted': { volume: aVolume({ metadata: { ...at('n1') } }), want: [] },
  'removes the data of a deleted volume on this node': {
    volume: aVolume({ metadata: { ...DELETED, ...at('n1') } }),
    want: BOTH,
  },
  'does nothing for a deleted volume on another node': {
    volume: aVolume({ metadata: { ...DELETED, ...at('n2') } }),
    want: [],
  },
  'removes the data of a deleted shared volume': { volume: aVolume({ metadata: DELETED }), want: BOTH },
  'keeps the data of a deleted volume that is bound': {
    volume: aVolume({ metadata: DELETED, phase: 'Bound' }),
    want: [],
  },
  'keeps the data of a deleted volume that Kubernetes protects': {
    volume: aVolume({ metadata: { ...DELETED, finalizers: [...DELETED.finalizers, 'kubernetes.io/pv-protection'] } }),
    want: [],
  },
  'keeps the data of a deleted volume that is being filled': {
    volume: aVolume({ metadata: { ...DELETED, finalizers: [...DELETED.finalizers, 'selfsame.io/volume-copy'] } }),
    want: [],
  },
  'only removes the finalizer with reclaim policy Retain': {
    volume: aVolume({ metadata: DELETED, spec: { persistentVolumeReclaimPolicy: 'Retain' } }),
    want: ['removeFinalizer'],
  },
  'does nothing after the finalizer was removed': {
    volume: aVolume({ metadata: { ...DELETED, finalizers: ['x.io/other'] } }),
    want: [],
  },
  'removes a leftover on this node': { volume: aVolume({ metadata: left('n1', 'n2') }), want: ['removeLeftover'] },
  'removes a leftover of a deleted volume': {
    volume: aVolume({ metadata: { ...DELETED, ...left('n1', 'n2') } }),
    want: ['removeLeftover'],
  },
  'does nothing about a leftover on another node': { volume: aVolume({ metadata: left('n3', 'n2') }), want: [] },
  'never removes the data of a volume on this node as a leftover': {
    volume: aVolume({ metadata: left('n1', 'n1') }),
    want: [],
  },
  'does not remove a leftover while the volume returns to this node': {
    volume: aVolume({ metadata: left('n1', 'n2', { 'selfsame.io/incoming-node': 'n1' }) }),
    want: [],
  },
  'ignores a leftover annotation on a volume of another provisioner': {
    volume: aVolume({
      metadata: { annotations: { 'selfsame.io/leftover-node': 'n1', 'selfsame.io/volume-node': 'n2' } },
    }),
    want: [],
  },
  'keeps the data of a deleted volume while another node has a leftover': {
    volume: aVolume({ metadata: { ...DELETED, ...left('n2', 'n1') } }),
    want: [],
  },
  'keeps the data of a deleted volume while it is moving': {
    volume: aVolume({ metadata: { ...DELETED, annotations: { ...at('n1').annotations, ...INCOMING } } }),
    want: [],
  },
  'does nothing for a deleted volume of another provisioner': {
    volume: aVolume({ metadata: { ...DELETED, annotations: {} } }),
    want: [],
  },
};

for (const [sentence, { volume, want }] of Object.entries(cases)) {
  test(sentence, () =>
    assert.deepEqual(
      decideNodeVolume(volume, 'n1').map((action) => action.do),
      want,
    ),
  );
}

const paths: Record<string, { path: string | undefined; want: boolean }> = {
  'a file of the volume': { path: '/var/lib/node-1/volumes/pv/disk.img', want: true },
  'a file of a volume with a longer name': { path: '/var/lib/node-1/volumes/pv-2/disk.img', want: false },
  'a block device': { path: '/dev/loop3', want: false },
  'no medium': { path: undefined, want: false },
};
for (const [sentence, { path, want }] of Object.entries(paths)) {
  test(`a guest with ${sentence} ${want ? 'uses' : 'does not use'} the volume`, () => {
    const source = path === undefined ? undefined : { path, format: 'raw' as const };
    const disk = { type: 'disk', id: 'disk-root', source } as DiskDevice;
    assert.equal(usesVolume({ devices: [disk] } as Partial<DomainDefinition> as DomainDefinition, aVolume()), want);
  });
}

const moves: Record<string, { migration?: DomainMigration; state?: object; want: boolean }> = {
  'a guest without a migration is not moving': { want: false },
  'a guest is moving while a migration is requested': { state: { migrationUid: 'm' }, want: true },
  'a guest is not moving after the migration is completed': {
    state: { migrationUid: 'm', completed: true },
    want: false,
  },
  'a guest is moving while it is being sent': {
    migration: { uid: 'm', peer: 'n2', role: 'source', step: 'sending' },
    want: true,
  },
  'a guest that was taken back is not moving': {
    migration: { uid: 'm', peer: 'n2', role: 'source', step: 'aborted' },
    want: false,
  },
  'a guest is moving while it is being received': {
    migration: { uid: 'm', peer: 'n2', role: 'target', step: 'waiting' },
    want: true,
  },
  'a guest that has arrived is not moving': {
    migration: { uid: 'm', peer: 'n2', role: 'target', step: 'arrived' },
    want: false,
  },
};
for (const [sentence, { migration, state, want }] of Object.entries(moves)) {
  test(sentence, () => {
    const domain = { id: 'd', ...(migration && { migration }) } as DomainInfo;
    const vmi = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: {}, spec: { domain: {} } };
    assert.equal(isGuestMoving(domain, { ...vmi, status: { migrationState: state } }), want);
  });
}

test('a volume is moving while it has an incoming node', () => {
  assert.equal(isVolumeMoving(aVolume({ metadata: at('n1') })), false);
  assert.equal(isVolumeMoving(aVolume({ metadata: { annotations: INCOMING } })), true);
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

test('a volume has grown if the status of its claim is smaller', () => {
  assert.equal(hasGrown(aVolume(), aClaim('1Gi')), true);
  assert.equal(hasGrown(aVolume(), aClaim('2048Mi')), false);
  assert.equal(hasGrown(aVolume(), aClaim('3Gi')), false);
  assert.equal(hasGrown(aVolume(), aClaim()), false);
});

test('the status of a grown claim has no resize condition', () => {
  assert.deepEqual(grownClaimStatus(aVolume(), aClaim('1Gi')), {
    phase: 'Bound',
    capacity: { storage: '2Gi' },
    conditions: [{ type: 'Other', status: 'True' }],
  });
});

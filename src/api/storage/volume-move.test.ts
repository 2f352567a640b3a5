import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { isOnOneNode, decideVolumeMoves } from '#api/storage/volume-move.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';

type AccessMode = PersistentVolume['spec']['accessModes'][number];

/** `node` has the data; undefined for a shared volume. */
function ownVolume(node: string | undefined): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', ...(node === undefined ? {} : { annotations: { [VOLUME_NODE_ANNOTATION]: node } }) },
    spec: { capacity: { storage: '1Gi' }, accessModes: [], csi: { driver: LOCAL_DRIVER, volumeHandle: 'h' } },
  };
}

function foreignVolume(...accessModes: AccessMode[]): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    // The annotation counts only on our own volumes.
    metadata: { name: 'pv-1', annotations: { [VOLUME_NODE_ANNOTATION]: 'node-1' } },
    spec: { capacity: { storage: '1Gi' }, accessModes, nfs: { server: 's', path: '/' } },
  };
}

const CLAIM = { persistentVolumeClaim: { claimName: 'data' } };
const EPHEMERAL = { ephemeral: CLAIM };
const DISK = { disk: { bus: 'virtio' } } as const;
const READ_ONLY_DISK = { disk: { bus: 'virtio', readonly: true } } as const;
const CDROM = { cdrom: { bus: 'sata' } } as const;

interface Case {
  readonly volume: Omit<VmiVolume, 'name'>;
  readonly disk?: Omit<Disk, 'name'> | 'none';
  readonly bound?: PersistentVolume;
  /** `stays: why`, or the kind of move; undefined if the volume has no move. */
  readonly want: string | undefined;
}

const NOT_SHARED = 'stays: its volume pv-1 cannot be used by two nodes';

const cases: Record<string, Case> = {
  'the content of a cloud-init CD-ROM is sent': {
    volume: { cloudInitNoCloud: { userData: '' } },
    disk: CDROM,
    want: 'content',
  },
  'a writable cloud-init disk is copied': {
    volume: { cloudInitNoCloud: { userData: '' } },
    want: 'moves',
  },
  'an emptyDisk is copied': { volume: { emptyDisk: { capacity: '1Gi' } }, want: 'moves' },
  'a hostDisk cannot be migrated': {
    volume: { hostDisk: { path: '/d.img', type: 'Disk' } },
    want: 'stays: a hostDisk is a file of its node',
  },
  'a directLun cannot be migrated': {
    volume: { directLun: { guid: 'g' } },
    want: 'stays: a directLun is a device of its node',
  },
  'a claim without a volume cannot be migrated': { volume: CLAIM, want: 'stays: the claim data has no volume' },
  'a claim on one node is copied': { volume: CLAIM, bound: ownVolume('node-1'), want: 'moves' },
  'a claim on shared storage is shared': { volume: CLAIM, bound: ownVolume(undefined), want: 'shared' },
  'a CD-ROM on one node cannot be migrated': {
    volume: CLAIM,
    disk: CDROM,
    bound: ownVolume('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a read-only disk on one node cannot be migrated': {
    volume: CLAIM,
    disk: READ_ONLY_DISK,
    bound: ownVolume('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a read-only claim on one node cannot be migrated': {
    volume: { persistentVolumeClaim: { claimName: 'data', readOnly: true } },
    bound: ownVolume('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a CD-ROM on shared storage is shared': { volume: CLAIM, disk: CDROM, bound: ownVolume(undefined), want: 'shared' },
  'a ReadWriteMany volume of another driver is shared': {
    volume: CLAIM,
    bound: foreignVolume('ReadWriteMany'),
    want: 'shared',
  },
  'a ReadWriteOnce volume of another driver cannot be migrated': {
    volume: CLAIM,
    bound: foreignVolume('ReadWriteOnce'),
    want: NOT_SHARED,
  },
  'a ReadOnlyMany volume of another driver is shared if it is read-only': {
    volume: CLAIM,
    disk: CDROM,
    bound: foreignVolume('ReadWriteOnce', 'ReadOnlyMany'),
    want: 'shared',
  },
  'a ReadOnlyMany volume of another driver cannot be migrated if it is writable': {
    volume: CLAIM,
    bound: foreignVolume('ReadWriteOnce', 'ReadOnlyMany'),
    want: NOT_SHARED,
  },
  'an ephemeral volume on a shared base is copied': {
    volume: EPHEMERAL,
    bound: ownVolume(undefined),
    want: 'moves above a base',
  },
  'an ephemeral volume on a base on one node cannot be migrated': {
    volume: EPHEMERAL,
    bound: ownVolume('node-1'),
    want: 'stays: the volume below it is on one node only',
  },
  'an ephemeral volume on a ReadWriteOnce base of another driver cannot be migrated': {
    volume: EPHEMERAL,
    bound: foreignVolume('ReadWriteOnce'),
    want: 'stays: the volume below it is on one node only',
  },
  'a volume without a disk has no move': { volume: CLAIM, disk: 'none', want: undefined },
};

for (const [name, { volume, disk = DISK, bound, want }] of Object.entries(cases)) {
  test(name, () => {
    const disks = disk === 'none' ? [] : [{ name: 'd', ...disk }];
    const spec = { domain: { devices: { disks } }, volumes: [{ name: 'd', ...volume }] };
    const moves = decideVolumeMoves(spec, (claimName) => (claimName === 'data' ? bound : undefined));
    const move = moves.get('d');
    assert.equal(moves.size, want === undefined ? 0 : 1);
    switch (move?.is) {
      case 'moves':
        return assert.equal(move.overlay ? 'moves above a base' : 'moves', want);
      case 'stays':
        return assert.equal(move.why, `cannot migrate VMI: volume d: ${want?.replace(/^stays: /, '')}`);
      default:
        return assert.equal(move?.is, want);
    }
  });
}

test('only our own volumes are on one node', () => {
  assert.deepEqual([ownVolume('node-1'), ownVolume(undefined), foreignVolume('ReadWriteOnce')].map(isOnOneNode), [
    true,
    false,
    false,
  ]);
});

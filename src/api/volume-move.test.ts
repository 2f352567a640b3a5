import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Volume } from '#api/domain/volume.ts';
import { LOCAL_DRIVER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { liesOnNode, volumeMoves } from '#api/volume-move.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';

type AccessMode = PersistentVolume['spec']['accessModes'][number];

/** `node`: where the data lies; undefined where every node reaches it. */
function ours(node: string | undefined): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', ...(node === undefined ? {} : { annotations: { [VOLUME_NODE_ANNOTATION]: node } }) },
    spec: { capacity: { storage: '1Gi' }, accessModes: [], csi: { driver: LOCAL_DRIVER, volumeHandle: 'h' } },
  };
}

function foreign(...accessModes: AccessMode[]): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    // What others write there means nothing.
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
  readonly volume: Omit<Volume, 'name'>;
  readonly disk?: Omit<Disk, 'name'> | 'none';
  readonly bound?: PersistentVolume;
  /** `stays: why`, or what becomes of it; undefined where nobody is told of it. */
  readonly want: string | undefined;
}

const UNREACHED = 'stays: its volume pv-1 cannot be used by two nodes';

const cases: Record<string, Case> = {
  'a seed is sent as it is': { volume: { cloudInitNoCloud: { userData: '' } }, disk: CDROM, want: 'content' },
  'a seed that the guest may have written to goes along': {
    volume: { cloudInitNoCloud: { userData: '' } },
    want: 'moves',
  },
  'an empty disk goes along': { volume: { emptyDisk: { capacity: '1Gi' } }, want: 'moves' },
  'a file of the node stays': {
    volume: { hostDisk: { path: '/d.img', type: 'Disk' } },
    want: 'stays: a hostDisk is a file of its node',
  },
  'a device of the node stays': {
    volume: { directLun: { guid: 'g' } },
    want: 'stays: a directLun is a device of its node',
  },
  'a claim without a volume stays': { volume: CLAIM, want: 'stays: the claim data has no volume' },
  'a claim on the node goes along': { volume: CLAIM, bound: ours('node-1'), want: 'moves' },
  'a claim that every node reaches is shared': { volume: CLAIM, bound: ours(undefined), want: 'shared' },
  'a claim on the node that is only read stays': {
    volume: CLAIM,
    disk: CDROM,
    bound: ours('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a claim on the node that is a disk to read only stays': {
    volume: CLAIM,
    disk: READ_ONLY_DISK,
    bound: ours('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a claim on the node that its volume lets be read only stays': {
    volume: { persistentVolumeClaim: { claimName: 'data', readOnly: true } },
    bound: ours('node-1'),
    want: 'stays: it is read-only and on one node only',
  },
  'a medium that every node reaches is shared': { volume: CLAIM, disk: CDROM, bound: ours(undefined), want: 'shared' },
  'a foreign volume that many write is shared': { volume: CLAIM, bound: foreign('ReadWriteMany'), want: 'shared' },
  'a foreign volume of one node stays': { volume: CLAIM, bound: foreign('ReadWriteOnce'), want: UNREACHED },
  'a foreign volume that many may read is shared where it is only read': {
    volume: CLAIM,
    disk: CDROM,
    bound: foreign('ReadWriteOnce', 'ReadOnlyMany'),
    want: 'shared',
  },
  'a foreign volume that many may read stays where it is written': {
    volume: CLAIM,
    bound: foreign('ReadWriteOnce', 'ReadOnlyMany'),
    want: UNREACHED,
  },
  'what is above a shared base goes along': { volume: EPHEMERAL, bound: ours(undefined), want: 'moves above a base' },
  'what is above a base on the node stays': {
    volume: EPHEMERAL,
    bound: ours('node-1'),
    want: 'stays: the volume below it is on one node only',
  },
  'what is above a foreign base of one node stays': {
    volume: EPHEMERAL,
    bound: foreign('ReadWriteOnce'),
    want: 'stays: the volume below it is on one node only',
  },
  'a volume without a disk is not in the guest': { volume: CLAIM, disk: 'none', want: undefined },
};

for (const [name, { volume, disk = DISK, bound, want }] of Object.entries(cases)) {
  test(name, () => {
    const disks = disk === 'none' ? [] : [{ name: 'd', ...disk }];
    const spec = { domain: { devices: { disks } }, volumes: [{ name: 'd', ...volume }] };
    const moves = volumeMoves(spec, (claimName) => (claimName === 'data' ? bound : undefined));
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

test('only volumes of ours lie on a node', () => {
  assert.deepEqual([ours('node-1'), ours(undefined), foreign('ReadWriteOnce')].map(liesOnNode), [true, false, false]);
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { aLocalVolume, aVolume } from '#node/volumes/local/testing/volumes-scene.ts';
import { isReadOnlyVolume, findVolumePlace } from '#node/volumes/local/volume-place.ts';

const host = { nodeName: 'node-1', nodeDir: '/d', sharedDir: '/s' };

function withHandle(volumeHandle: string): PersistentVolume {
  const volume = aLocalVolume();
  return { ...volume, spec: { ...volume.spec, csi: { ...volume.spec.csi!, volumeHandle } } };
}

const own = { is: 'own', root: '/d', name: 'pvc-1', block: false, bytes: 8 * 1024 * 1024 };

const cases: Record<string, { volume: PersistentVolume; want: object }> = {
  'finds local volumes below the directory of the node': { volume: aLocalVolume(), want: own },
  'finds shared volumes below the shared directory': {
    volume: aLocalVolume({ scope: 'shared' }),
    want: { ...own, root: '/s' },
  },
  'recognizes block volumes': { volume: aLocalVolume({ mode: 'Block' }), want: { ...own, block: true } },
  'rounds sizes up to pages': { volume: aLocalVolume({ storage: '4097' }), want: { ...own, bytes: 8192 } },
  'refuses a volume whose data is on another node': {
    volume: aLocalVolume({ node: 'node-2' }),
    want: { is: 'failed', reason: 'VolumeOnOtherNode' },
  },
  'refuses a path as handle': {
    volume: withHandle('../../etc'),
    want: { is: 'failed', reason: 'VolumeUnsupported' },
  },
  'refuses dots as handle': { volume: withHandle('..'), want: { is: 'failed', reason: 'VolumeUnsupported' } },
  'finds a hostPath directory': {
    volume: aVolume({ hostPath: { path: '/data' } }),
    want: { is: 'directory', path: '/data', bytes: own.bytes, create: false },
  },
  'creates a hostPath directory if its type allows it': {
    volume: aVolume({ hostPath: { path: '/data', type: 'DirectoryOrCreate' } }),
    want: { is: 'directory', path: '/data', bytes: own.bytes, create: true },
  },
  'finds a local directory': {
    volume: aVolume({ local: { path: '/mnt/a' } }),
    want: { is: 'directory', path: '/mnt/a', bytes: own.bytes, create: false },
  },
  'finds a block device': {
    volume: aVolume({ local: { path: '/dev/sdb' }, volumeMode: 'Block' }),
    want: { is: 'device', path: '/dev/sdb' },
  },
  'mounts nfs below its own directory': {
    volume: aVolume({ nfs: { server: 'nas', path: '/x', readOnly: true }, mountOptions: ['nfsvers=4.1'] }),
    want: {
      is: 'directory',
      path: `${host.nodeDir}/nfs/pv-1`,
      bytes: own.bytes,
      create: false,
      mount: { source: 'nas:/x', options: ['nfsvers=4.1', 'ro'] },
    },
  },
  'refuses an option as nfs server': {
    volume: aVolume({ nfs: { server: '-o', path: '/x' } }),
    want: { is: 'failed', reason: 'VolumeUnsupported' },
  },
  'refuses nfs as a block device': {
    volume: aVolume({ nfs: { server: 'nas', path: '/x' }, volumeMode: 'Block' }),
    want: { is: 'failed', reason: 'VolumeUnsupported' },
  },
  'refuses other CSI drivers': {
    volume: aVolume({ csi: { driver: 'ebs.csi.aws.com', volumeHandle: 'vol-1' } }),
    want: { is: 'failed', reason: 'VolumeUnsupported' },
  },
};

describe('volume place', () => {
  for (const [sentence, { volume, want }] of Object.entries(cases)) {
    it(sentence, () => {
      const { message: _message, ...place } = { message: '', ...findVolumePlace(volume, host) };
      assert.deepEqual(place, want);
    });
  }

  it('names the unsupported source', () => {
    const place = findVolumePlace(aVolume({ iscsi: {} }), host);
    assert.match('message' in place ? place.message : '', /\(iscsi\)/);
  });

  it('recognizes read-only volumes', () => {
    assert.equal(isReadOnlyVolume(aLocalVolume()), false);
    assert.equal(isReadOnlyVolume(aVolume({ accessModes: ['ReadOnlyMany'] })), true);
    assert.equal(isReadOnlyVolume(aVolume({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] })), false);
  });
});

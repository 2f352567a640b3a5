import assert from 'node:assert/strict';
import { loopSkipReason } from '#node/volumes/local/testing/block-support.ts';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { candidateNames, prepareDirectLun, type DirectLun } from '#node/volumes/local/mounts/direct-lun.ts';
import { aLocalVolume, aScene, aVmi, DOMAIN_ID, readyVolume } from '#node/volumes/local/testing/volumes-scene.ts';

const GUID = '3600140580e1c0a7';

const names: Record<string, { lun: DirectLun; want: readonly string[] | undefined }> = {
  "searches a guid among the kernel's names, then among device mapper names": {
    lun: { guid: GUID },
    want: [
      `disk/by-id/wwn-0x${GUID}`,
      `disk/by-id/scsi-${GUID}`,
      `disk/by-id/dm-uuid-mpath-${GUID}`,
      `disk/by-id/${GUID}`,
      `mapper/${GUID}`,
    ],
  },
  'searches a uuid in by-uuid': { lun: { uuid: '1A2B-3C4D' }, want: ['disk/by-uuid/1A2B-3C4D'] },
  'refuses both a guid and a uuid': { lun: { guid: GUID, uuid: GUID }, want: undefined },
  'refuses neither guid nor uuid': { lun: {}, want: undefined },
  'refuses an empty guid': { lun: { guid: '' }, want: undefined },
  'refuses a path': { lun: { guid: '../../sda' }, want: undefined },
  'refuses the parent directory': { lun: { uuid: '..' }, want: undefined },
  'refuses a NUL character': { lun: { uuid: 'a\0b' }, want: undefined },
};
for (const [sentence, { lun, want }] of Object.entries(names)) {
  test(sentence, () => {
    assert.deepEqual(
      candidateNames(lun)?.map((name) => name.join('/')),
      want,
    );
  });
}

/** Creates a link to the target with this name, in disk/by-id of the simulated /dev. */
function link(dir: string, name: string, target: string): void {
  mkdirSync(join(dir, 'dev', 'disk', 'by-id'), { recursive: true });
  symlinkSync(target, join(dir, 'dev', 'disk', 'by-id', name));
}

describe('a direct LUN', () => {
  it('is waited for if the node does not have it', async () => {
    await using scene = aScene();
    const { host } = scene;
    const prepared = await prepareDirectLun({ guid: GUID }, host);
    assert.deepEqual([prepared.is, 'reason' in prepared && prepared.reason], ['waiting', 'LunMissing']);
    assert.equal('isMissing' in prepared && prepared.isMissing, true);
  });

  it('is refused if its name is invalid', async () => {
    await using scene = aScene();
    assert.equal((await prepareDirectLun({ guid: '../sda' }, scene.host)).is, 'failed');
  });

  it('is refused if it is a file', async () => {
    await using scene = aScene();
    writeFileSync(join(scene.dir, 'file'), 'x');
    link(scene.dir, `scsi-${GUID}`, join(scene.dir, 'file'));
    const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
    assert.deepEqual([prepared.is, 'reason' in prepared && prepared.reason], ['failed', 'VolumeUnsupported']);
  });

  it('is missing if its link is broken', async () => {
    await using scene = aScene();
    link(scene.dir, `scsi-${GUID}`, join(scene.dir, 'nowhere'));
    const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
    assert.equal('reason' in prepared && prepared.reason, 'LunMissing');
  });

  it('is prepared as a block device', { skip: loopSkipReason() }, async () => {
    await using scene = aScene();
    const image = join(scene.dir, 'image');
    writeFileSync(image, Buffer.alloc(1024 * 1024));
    const device = String(execFileSync('losetup', ['--find', '--show', image])).trim();
    try {
      link(scene.dir, `wwn-0x${GUID}`, device);
      const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
      assert.deepEqual(prepared, {
        is: 'ready',
        volume: { source: { path: device, format: 'raw' }, readonly: false, cacheNone: true },
      });
    } finally {
      execFileSync('losetup', ['--detach', device]);
    }
  });

  it('is refused if it belongs to a claim', { skip: loopSkipReason() }, async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    const vmi = aVmi([{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }]);
    try {
      const { source } = readyVolume(await volumes.prepare(vmi, scene.lookups, {}), 'root');
      link(scene.dir, `wwn-0x${GUID}`, source.path);
      const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
      assert.deepEqual([prepared.is, 'reason' in prepared && prepared.reason], ['failed', 'LunRefused']);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { namesOf, prepareDirectLun, type DirectLun } from './direct-lun.ts';
import { aLocalVolume, aScene, aVmi, DOMAIN_ID, isRoot, readyVolume } from './testing/volumes-scene.ts';

const GUID = '3600140580e1c0a7';

const names: Record<string, { lun: DirectLun; want: readonly string[] | undefined }> = {
  'a guid is looked for under the names that the kernel gives, then as a map': {
    lun: { guid: GUID },
    want: [
      `disk/by-id/wwn-0x${GUID}`,
      `disk/by-id/scsi-${GUID}`,
      `disk/by-id/dm-uuid-mpath-${GUID}`,
      `disk/by-id/${GUID}`,
      `mapper/${GUID}`,
    ],
  },
  'a uuid is looked for as such': { lun: { uuid: '1A2B-3C4D' }, want: ['disk/by-uuid/1A2B-3C4D'] },
  'both are one too many': { lun: { guid: GUID, uuid: GUID }, want: undefined },
  'none is one too few': { lun: {}, want: undefined },
  'an empty one names nothing': { lun: { guid: '' }, want: undefined },
  'a path is no name': { lun: { guid: '../../sda' }, want: undefined },
  'nor is the directory above': { lun: { uuid: '..' }, want: undefined },
  'nor anything with a NUL': { lun: { uuid: 'a\0b' }, want: undefined },
};
for (const [sentence, { lun, want }] of Object.entries(names)) {
  test(sentence, () => {
    assert.deepEqual(
      namesOf(lun)?.map((name) => name.join('/')),
      want,
    );
  });
}

/** A /dev in which this name, below disk/by-id, leads to a file of that content. */
function link(dir: string, name: string, target: string): void {
  mkdirSync(join(dir, 'dev', 'disk', 'by-id'), { recursive: true });
  symlinkSync(target, join(dir, 'dev', 'disk', 'by-id', name));
}

describe('a direct LUN', () => {
  it('is waited for where the node has none', async () => {
    await using scene = aScene();
    const { host } = scene;
    const prepared = await prepareDirectLun({ guid: GUID }, host);
    assert.deepEqual([prepared.is, 'reason' in prepared && prepared.reason], ['waiting', 'LunMissing']);
    assert.equal('isMissing' in prepared && prepared.isMissing, true);
  });

  it('is refused where its name names nothing', async () => {
    await using scene = aScene();
    assert.equal((await prepareDirectLun({ guid: '../sda' }, scene.host)).is, 'failed');
  });

  it('is refused where it is a file', async () => {
    await using scene = aScene();
    writeFileSync(join(scene.dir, 'file'), 'x');
    link(scene.dir, `scsi-${GUID}`, join(scene.dir, 'file'));
    const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
    assert.deepEqual([prepared.is, 'reason' in prepared && prepared.reason], ['failed', 'VolumeUnsupported']);
  });

  it('is missing where a name leads nowhere', async () => {
    await using scene = aScene();
    link(scene.dir, `scsi-${GUID}`, join(scene.dir, 'nowhere'));
    const prepared = await prepareDirectLun({ guid: GUID }, scene.host);
    assert.equal('reason' in prepared && prepared.reason, 'LunMissing');
  });

  it('is given to guests as the block device that it is', { skip: withoutLoops() }, async () => {
    await using scene = aScene();
    const image = join(scene.dir, 'image');
    writeFileSync(image, Buffer.alloc(1024 * 1024));
    const device = String(execFileSync('losetup', ['--find', '--show', image])).trim();
    try {
      link(scene.dir, `wwn-0x${GUID}`, device);
      const guestUser = { uid: 64_055, gid: 64_055 };
      const prepared = await prepareDirectLun({ guid: GUID }, { ...scene.host, guestUser });
      assert.deepEqual(prepared, {
        is: 'ready',
        volume: { source: { path: device, format: 'raw' }, readonly: false, cacheNone: true },
      });
      assert.equal(statSync(device).uid, guestUser.uid);
    } finally {
      execFileSync('chown', ['0', device]);
      execFileSync('losetup', ['--detach', device]);
    }
  });

  it('is refused where it is the volume of a claim', { skip: withoutLoops() }, async () => {
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

function withoutLoops(): string | false {
  if (!isRoot) return 'only root may make loop devices';
  try {
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch {
    return 'this machine has no loop devices';
  }
}

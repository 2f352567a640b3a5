import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { aLocalVolume, aScene, aVmi, DOMAIN_ID, isRoot, readyVolume } from './testing/volumes-scene.ts';

const MI = 1024 * 1024;
const OTHER_ID = '6f3c0a0e-5f43-4f6f-8a53-6d7a39d3b1c4';
const claimed = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];

function whyNot(): string | false {
  if (!isRoot) return 'only root may make loop devices';
  try {
    execFileSync('losetup', ['--find'], { stdio: 'pipe' });
    return false;
  } catch {
    return 'this machine has no loop devices';
  }
}

function other(): Stored<VirtualMachineInstance> {
  const vmi = aVmi(claimed);
  return { ...vmi, metadata: { ...vmi.metadata, uid: OTHER_ID } };
}

const backingFiles = () => String(execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']));
const sizeOf = (device: string) => Number(execFileSync('blockdev', ['--getsize64', device]));

describe('block volumes', { skip: whyNot() }, () => {
  it('are a device of their own for each domain, the same when asked again, gone with the domain', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block', scope: 'shared' }));
    const volumes = await scene.open({ guestUser: { uid: 64_055, gid: 64_055 } });
    try {
      const first = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root').source;
      const second = readyVolume(await volumes.prepare(other(), scene.lookups, {}), 'root').source;

      assert.equal(first.format, 'raw');
      assert.ok(statSync(first.path).isBlockDevice());
      assert.equal(statSync(first.path).uid, 64_055);
      assert.notEqual(second.path, first.path);
      const again = await (await scene.open()).prepare(aVmi(claimed), scene.lookups, {});
      assert.deepEqual(readyVolume(again, 'root').source, first);

      await volumes.release(DOMAIN_ID);
      assert.equal(backingFiles().includes(join(scene.dir, 'shared/volumes/pvc-1', `${DOMAIN_ID}.block`)), false);
      assert.equal(backingFiles().includes(`${OTHER_ID}.block`), true);
      assert.equal(statSync(first.path).uid, 0);
    } finally {
      await volumes.release(DOMAIN_ID);
      await volumes.release(OTHER_ID);
    }
    assert.deepEqual(readdirSync(join(scene.dir, 'shared/volumes/pvc-1')), ['disk.img']);
  });

  it('grow while they are in use', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    try {
      const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
      assert.equal(sizeOf(source.path), 8 * MI);

      assert.equal(await volumes.grow(aLocalVolume({ mode: 'Block', storage: '12Mi' })), 12 * MI);

      assert.equal(sizeOf(source.path), 12 * MI);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    await volumes.removeData(aLocalVolume({ mode: 'Block' }));
    assert.equal(existsSync(join(scene.host.nodeDir, 'volumes', 'pvc-1')), false);
  });
});

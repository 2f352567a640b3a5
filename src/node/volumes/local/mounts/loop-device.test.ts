import assert from 'node:assert/strict';
import { loopSkipReason } from '#node/volumes/local/testing/block-support.ts';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { aLocalVolume, aScene, aVmi, DOMAIN_ID, readyVolume } from '#node/volumes/local/testing/volumes-scene.ts';

const MI = 1024 * 1024;
const OTHER_ID = '6f3c0a0e-5f43-4f6f-8a53-6d7a39d3b1c4';
const claimed = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];

/** Waits in real time, because the kernel needs it. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

function other(): Stored<VirtualMachineInstance> {
  const vmi = aVmi(claimed);
  return { ...vmi, metadata: { ...vmi.metadata, uid: OTHER_ID } };
}

const backingFiles = () => String(execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']));
const sizeOf = (device: string) => Number(execFileSync('blockdev', ['--getsize64', device]));

describe('block volumes', { skip: loopSkipReason() }, () => {
  it('get a separate device for each domain, the same on repeated calls, which is removed with the domain', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block', scope: 'shared' }));
    const volumes = await scene.open();
    try {
      const first = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root').source;
      const beside = await volumes.prepare(other(), scene.lookups, { hasEnded: (id) => id === DOMAIN_ID });
      const second = readyVolume(beside, 'root').source;

      assert.equal(first.format, 'raw');
      assert.ok(statSync(first.path).isBlockDevice());
      // The hypervisor gives it to the guest.
      chownSync(first.path, 64_055, 64_055);
      assert.notEqual(second.path, first.path);
      const again = await (await scene.open()).prepare(aVmi(claimed), scene.lookups, { hasEnded: () => true });
      assert.deepEqual(readyVolume(again, 'root').source, first);

      await volumes.release(DOMAIN_ID);
      assert.equal(
        backingFiles().includes(join(scene.dir, 'shared/volumes/pvc-1', `root_${DOMAIN_ID}.node-1.block`)),
        false,
      );
      assert.equal(backingFiles().includes(`root_${OTHER_ID}.node-1.block`), true);
      assert.equal(statSync(first.path).uid, 0);
    } finally {
      await volumes.release(DOMAIN_ID);
      await volumes.release(OTHER_ID);
    }
    assert.deepEqual(readdirSync(join(scene.dir, 'shared/volumes/pvc-1')), ['disk.img']);
  });

  it('are not writable for two guests of a node at a time', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    const reading = (vmi: Stored<VirtualMachineInstance>) => ({ ...vmi, spec: { ...vmi.spec, volumes: readers } });
    const readers = [{ name: 'root', persistentVolumeClaim: { claimName: 'data', readOnly: true } }];
    try {
      await volumes.prepare(aVmi(claimed), scene.lookups, {});
      for (const vmi of [other(), reading(other())]) {
        const refused = await volumes.prepare(vmi, scene.lookups, {});
        assert.equal(refused.is === 'waiting' && refused.reason, 'VolumeInUse');
        assert.equal(backingFiles().includes(OTHER_ID), false);
      }
      await volumes.release(DOMAIN_ID);
      for (const vmi of [aVmi(claimed), other()])
        readyVolume(await volumes.prepare(reading(vmi), scene.lookups, {}), 'root');
    } finally {
      await volumes.release(DOMAIN_ID);
      await volumes.release(OTHER_ID);
    }
  });

  it('are detached after release even if another program had the device open', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    const { path } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root').source;
    const reader = openSync(path, 'r');
    const released = volumes.release(DOMAIN_ID);
    await until(() => readFileSync(`/sys/block/${basename(path)}/loop/autoclear`, 'utf8').trim() === '1');
    closeSync(reader);
    await released;
    assert.ok(!backingFiles().includes(scene.dir));
  });

  it('are detached one at a time while the guest runs, without affecting other guests', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    scene.bind('log', aLocalVolume({ mode: 'Block', name: 'pvc-2' }));
    const volumes = await scene.open();
    const both = [...claimed, { name: 'log', persistentVolumeClaim: { claimName: 'log' } }];
    const attached = () =>
      backingFiles()
        .split('\n')
        .filter((file) => file.startsWith(scene.dir))
        .map((file) => file.replace(/^.*\/|\..*$/g, ''))
        .sort();
    try {
      await volumes.prepare(aVmi(claimed), scene.lookups, {});
      const late = await volumes.prepare(aVmi(both), scene.lookups, { names: ['log'] });
      assert.deepEqual(late.is === 'ready' && [...late.volumes.keys()], ['log']);
      assert.deepEqual(attached(), [`log_${DOMAIN_ID}`, `root_${DOMAIN_ID}`]);
      // A refused guest keeps its own devices.
      const refused = await volumes.prepare(other(), scene.lookups, { names: ['root'] });
      assert.equal(refused.is === 'waiting' && refused.reason, 'VolumeInUse');

      await volumes.releaseVolume(DOMAIN_ID, 'log');
      assert.deepEqual(attached(), [`root_${DOMAIN_ID}`]);
      await volumes.releaseVolume(DOMAIN_ID, 'log');
      assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-2')), ['disk.img']);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
    assert.deepEqual(attached(), []);
  });

  it('that are refused do not affect the other devices of the guest', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    scene.bind('log', aLocalVolume({ mode: 'Block', name: 'pvc-2' }));
    const volumes = await scene.open();
    const both = [...claimed, { name: 'log', persistentVolumeClaim: { claimName: 'log' } }];
    try {
      await volumes.prepare(aVmi(claimed), scene.lookups, {});
      const beside = { ...other(), spec: { ...other().spec, volumes: [both[1]!] } };
      await volumes.prepare(beside, scene.lookups, {});
      const refused = await volumes.prepare(aVmi(both), scene.lookups, { names: ['log'] });
      assert.equal(refused.is === 'waiting' && refused.reason, 'VolumeInUse');
      assert.equal(backingFiles().includes(`root_${DOMAIN_ID}`), true);
    } finally {
      await volumes.release(DOMAIN_ID);
      await volumes.release(OTHER_ID);
    }
  });

  it('use the current image, whatever an earlier attempt has left', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    const directory = join(scene.host.nodeDir, 'volumes', 'pvc-1');
    try {
      await volumes.prepare(aVmi(claimed), scene.lookups, {});
      await volumes.release(DOMAIN_ID);
      // The agent was killed before it removed the name; then the content was replaced.
      linkSync(join(directory, 'disk.img'), join(directory, `root_${DOMAIN_ID}.node-1.block`));
      writeFileSync(join(directory, 'new'), 'new'.padEnd(8 * MI, ' '));
      renameSync(join(directory, 'new'), join(directory, 'disk.img'));

      const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');

      assert.equal(String(execFileSync('head', ['-c', '3', source.path])), 'new');
    } finally {
      await volumes.release(DOMAIN_ID);
    }
  });

  it('are detached even if the data of the volume was removed first', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
    await volumes.removeData(aLocalVolume({ mode: 'Block' }));

    await volumes.release(DOMAIN_ID);

    assert.equal(backingFiles().includes(scene.dir), false);
  });

  it('of unwanted domains are detached, and those of other nodes stay', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ mode: 'Block', scope: 'shared' }));
    const volumes = await scene.open();
    const neighbour = await scene.open({ nodeName: 'node-2' });
    const dir = join(scene.dir, 'shared/volumes/pvc-1');
    try {
      await volumes.prepare(aVmi(claimed), scene.lookups, {});
      await volumes.prepare(other(), scene.lookups, { hasEnded: () => true });
      await neighbour.prepare(other(), scene.lookups, {});
      // As after a restart of the machine: a name without its device.
      linkSync(join(dir, 'disk.img'), join(dir, 'root_a-lost-one.node-1.block'));
      // And a device of an older version, whose name has no volume.
      linkSync(join(dir, 'disk.img'), join(dir, 'an-old-one.node-1.block'));

      await volumes.releaseUnwanted((id) => id === DOMAIN_ID);

      const kept = [`root_${DOMAIN_ID}.node-1.block`, `root_${OTHER_ID}.node-2.block`];
      assert.deepEqual(readdirSync(dir).sort(), [...kept, 'disk.img'].sort());
      assert.equal(
        backingFiles()
          .split('\n')
          .filter((file) => file.startsWith(scene.dir)).length,
        2,
      );
    } finally {
      await volumes.releaseUnwanted(() => false);
      await neighbour.releaseUnwanted(() => false);
    }
    assert.deepEqual(readdirSync(dir), ['disk.img']);
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

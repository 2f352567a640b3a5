import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { formatSnapshotHandle, type SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { runCommand, type RunCommand } from '#node/volumes/local/run-command.ts';
import {
  aLocalVolume,
  aScene,
  aVmi,
  aVolume,
  hasProgram,
  isRoot,
  readyVolume,
  type VolumesScene,
} from '#node/volumes/local/testing/volumes-scene.ts';

const MI = 1024 * 1024;
const HERE: SnapshotPlace = { scope: 'node', node: 'node-1', id: 'snapcontent-1' };
const SHARED: SnapshotPlace = { scope: 'shared', id: 'snapcontent-1' };
const GUEST_UID = 65_534;
const qemuImg = hasProgram('qemu-img') ? {} : { skip: 'qemu-img is not installed' };
const needsRoot = { skip: isRoot ? false : 'only root may give files away' };
const claimed = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];

function diskOf(scene: VolumesScene, name = 'pvc-1', root = scene.host.nodeDir): string {
  return join(root, 'volumes', name, 'disk.img');
}

function snapshotDir(scene: VolumesScene, root = scene.host.nodeDir): string {
  return join(root, 'snapshots', HERE.id);
}

/** Creates a volume with some data. */
function write(scene: VolumesScene, text: string, name = 'pvc-1', bytes = 8 * MI): void {
  mkdirSync(join(scene.host.nodeDir, 'volumes', name), { recursive: true });
  writeFileSync(diskOf(scene, name), text);
  truncateSync(diskOf(scene, name), bytes);
}

/** Writes a copy as the hypervisor leaves it. */
function writeQcow2(path: string, text: string, extra: string[] = []): void {
  writeFileSync(`${path}.raw`, text);
  truncateSync(`${path}.raw`, 2 * MI);
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...extra, `${path}.raw`, `${path}.qcow2`]);
  writeFileSync(path, readFileSync(`${path}.qcow2`), { flag: 'r+' });
}

function aVolumeFromSnapshot(
  place: SnapshotPlace,
  options: Parameters<typeof aLocalVolume>[0] = {},
): Stored<PersistentVolume> {
  const volume = aLocalVolume({ name: 'pvc-2', ...options });
  Object.assign(volume.spec.csi!.volumeAttributes!, { snapshot: formatSnapshotHandle(place) });
  return volume;
}

/** Runs programs as usual, and calls `then` afterwards with the file that the last one wrote. */
function thenRun(after: (written: string) => void): RunCommand {
  return async (command, args, options) => {
    const result = await runCommand(command, args, options);
    after(args.at(-1)!);
    return result;
  };
}

/** Simulates a disk that becomes full in the middle of a copy. */
const fillsUp: RunCommand = async (_command, args) => {
  writeFileSync(args.at(-1)!, 'half');
  throw new Error('No space left on device');
};

function startsWith(path: string, text: string): void {
  assert.equal(readFileSync(path).toString('latin1', 0, text.length), text);
}

describe('snapshots of unused volumes', () => {
  for (const place of [HERE, SHARED]) {
    it(`keep the content, from which another volume can be filled (${place.scope})`, async () => {
      await using scene = aScene();
      const volumes = await scene.open();
      write(scene, 'before');

      await volumes.takeSnapshot(aLocalVolume(), place, {});
      assert.equal(await volumes.sealSnapshot(place), 8 * MI);
      assert.equal(await volumes.sealSnapshot(place), 8 * MI);
      write(scene, 'after!');
      await volumes.fill(aVolumeFromSnapshot(place, { storage: '16Mi' }), {});

      startsWith(diskOf(scene, 'pvc-2'), 'before');
      startsWith(diskOf(scene), 'after!');
      assert.equal(statSync(diskOf(scene, 'pvc-2')).size, 16 * MI);
      assert.ok(statSync(diskOf(scene, 'pvc-2')).blocks * 512 < MI, 'holes stay holes');
      scene.bind('data', aVolumeFromSnapshot(place, { storage: '16Mi' }));
      const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
      assert.deepEqual(source, { path: diskOf(scene, 'pvc-2'), format: 'raw' });
    });
  }

  it('of a volume that was never used are empty', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    await volumes.takeSnapshot(aLocalVolume(), HERE, {});
    assert.equal(await volumes.sealSnapshot(HERE), 8 * MI);
  });

  it('replace the remains of an earlier attempt', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    mkdirSync(snapshotDir(scene), { recursive: true });
    for (const name of ['disk.img', 'sealed', 'disk.img.new']) writeFileSync(join(snapshotDir(scene), name), '7');
    write(scene, 'now');

    await volumes.takeSnapshot(aLocalVolume(), HERE, {});

    startsWith(join(snapshotDir(scene), 'disk.img'), 'now');
    assert.deepEqual(readdirSync(snapshotDir(scene)).sort(), ['disk.format', 'disk.img']);
  });

  it('do not detect an image format in the bytes of a guest', qemuImg, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const block = aLocalVolume({ mode: 'Block' });
    write(scene, '');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', diskOf(scene), '64M']);
    truncateSync(diskOf(scene), 8 * MI);

    await volumes.takeSnapshot(block, HERE, {});
    assert.equal(await volumes.sealSnapshot(HERE), 8 * MI);
    await volumes.fill(aVolumeFromSnapshot(HERE, { mode: 'Block' }), {});

    assert.deepEqual(readFileSync(diskOf(scene, 'pvc-2')), readFileSync(diskOf(scene)));
  });

  it('keep the format of a qcow2 image, from which a raw volume is filled', qemuImg, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    write(scene, '', 'pvc-1', 0);
    writeQcow2(diskOf(scene), 'inside');

    await volumes.takeSnapshot(aLocalVolume({ storage: '2Mi' }), HERE, {});
    assert.equal(await volumes.sealSnapshot(HERE), 2 * MI);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});

    startsWith(diskOf(scene, 'pvc-2'), 'inside');
    assert.equal(statSync(diskOf(scene, 'pvc-2')).size, 8 * MI);
  });

  it('fail if the volume is written to meanwhile', async () => {
    await using scene = aScene({ run: thenRun(() => write(scene, 'after!')) });
    const volumes = await scene.open();
    write(scene, 'before');
    utimesSync(diskOf(scene), 0, 0);

    await assert.rejects(volumes.takeSnapshot(aLocalVolume(), HERE, {}), /was written to while it was copied/);
    assert.deepEqual(readdirSync(snapshotDir(scene)), []);
  });

  it('leave no partial copy on a full disk', async () => {
    await using scene = aScene({ run: fillsUp });
    const volumes = await scene.open();
    await assert.rejects(volumes.takeSnapshot(aLocalVolume(), HERE, {}), /No space left/);
    assert.deepEqual(readdirSync(snapshotDir(scene)), []);
  });

  it('do not touch the copy that another node has started', async () => {
    const dir = () => snapshotDir(scene, scene.host.sharedDir);
    await using scene = aScene({
      run: thenRun(() => {
        rmSync(dir(), { recursive: true });
        mkdirSync(dir());
        writeFileSync(join(dir(), 'disk.img'), 'half');
      }),
    });
    const volumes = await scene.open();
    await assert.rejects(volumes.takeSnapshot(aLocalVolume(), SHARED, {}), /the copy was removed meanwhile/);
    assert.deepEqual(readdirSync(dir()), ['disk.img']);
  });

  const refused: Record<string, { volume: Stored<PersistentVolume>; place?: SnapshotPlace; why: RegExp }> = {
    'of a volume of an administrator': {
      volume: aVolume({ hostPath: { path: '/data' } }),
      why: /does not belong to selfsame\.io\/local/,
    },
    'of a volume of another node': { volume: aLocalVolume({ node: 'node-2' }), why: /on node "node-2"/ },
    'for another node': {
      volume: aLocalVolume(),
      place: { scope: 'node', node: 'node-2', id: 'a' },
      why: /data is on node "node-2"; this is node "node-1"/,
    },
    'of a volume that is not filled yet': { volume: aVolumeFromSnapshot(SHARED), why: /still being copied/ },
  };
  for (const [sentence, { volume, place = HERE, why }] of Object.entries(refused)) {
    it(`are refused ${sentence}`, async () => {
      await using scene = aScene();
      const volumes = await scene.open();
      await assert.rejects(volumes.takeSnapshot(volume, place, {}), why);
      assert.equal(existsSync(snapshotDir(scene)), false);
    });
  }
});

describe('snapshots that a hypervisor writes', () => {
  it('fill raw volumes', qemuImg, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const path = await volumes.makeSnapshotFile(HERE);
    assert.equal(path, join(snapshotDir(scene), 'disk.img'));
    writeQcow2(path, 'running');

    assert.equal(await volumes.sealSnapshot(HERE), 2 * MI);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});

    startsWith(diskOf(scene, 'pvc-2'), 'running');
    assert.equal(readFileSync(join(diskOf(scene, 'pvc-2'), '..', 'disk.format'), 'utf8'), 'raw\n');
  });

  it('belong to the agent again after the hypervisor gave them to a guest', { ...qemuImg, ...needsRoot }, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const path = await volumes.makeSnapshotFile(HERE);
    writeQcow2(path, 'running');
    chownSync(path, GUEST_UID, GUEST_UID);
    const owners = [statSync(path).uid];
    await volumes.sealSnapshot(HERE);
    owners.push(statSync(path).uid);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});
    owners.push(statSync(diskOf(scene, 'pvc-2')).uid);

    assert.deepEqual(owners, [GUEST_UID, 0, 0]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(statSync(snapshotDir(scene)).mode & 0o777, 0o711);
  });

  it('are emptied when they start again', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const path = await volumes.makeSnapshotFile(HERE);
    writeFileSync(path, 'half');
    assert.equal(await volumes.makeSnapshotFile(HERE), path);
    assert.equal(statSync(path).size, 0);
  });

  it('are refused if they are not qcow2 or refer to other files', qemuImg, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const path = await volumes.makeSnapshotFile(HERE);
    await assert.rejects(volumes.sealSnapshot(HERE), /it is raw; expected qcow2/);
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', path]);
    await assert.rejects(volumes.sealSnapshot(HERE), /names a backing file/);
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /is not complete; expected a sealed one/);
  });
});

describe('volumes from snapshots', () => {
  /** Writes a sealed snapshot directly. */
  function writeSealed(scene: VolumesScene, format: 'raw' | 'qcow2' = 'raw'): void {
    mkdirSync(snapshotDir(scene), { recursive: true });
    for (const [name, text] of Object.entries({ 'disk.img': '1', 'disk.format': `${format}\n`, sealed: '1\n' })) {
      writeFileSync(join(snapshotDir(scene), name), text);
    }
  }

  it('are not started without enough free space, and neither are snapshots', qemuImg, async () => {
    const started: string[] = [];
    const run: RunCommand = async (command, args, options) => {
      // As on most file systems, which do not support reflinks.
      if (args[0] === '--reflink=always') throw new Error('Operation not supported');
      started.push(command);
      return await runCommand(command, args, options);
    };
    await using scene = aScene({ run });
    const volumes = await scene.open({ freeBytes: async () => -1 });
    write(scene, 'much');
    await assert.rejects(volumes.takeSnapshot(aLocalVolume(), HERE, {}), /has -1 bytes left/);
    writeSealed(scene);
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /has -1 bytes left/);
    writeQcow2(await volumes.makeSnapshotFile(HERE), 'running');
    await volumes.sealSnapshot(HERE);
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /has -1 bytes left/);
    assert.deepEqual(started, []);
  });

  for (const mode of ['Filesystem', 'Block'] as const) {
    it(`are never readable by other users (${mode})`, qemuImg, async () => {
      const modes: number[] = [];
      await using scene = aScene({ run: thenRun((written) => modes.push(statSync(written).mode & 0o777)) });
      const volumes = await scene.open();
      writeQcow2(await volumes.makeSnapshotFile(HERE), 'running');
      await volumes.sealSnapshot(HERE);

      await volumes.fill(aVolumeFromSnapshot(HERE, { mode }), {});

      modes.push(statSync(diskOf(scene, 'pvc-2')).mode & 0o777);
      assert.deepEqual(modes, [0o600, 0o600]);
    });
  }

  it('leave no partial copy on a full disk', async () => {
    await using scene = aScene({ run: fillsUp });
    const volumes = await scene.open();
    writeSealed(scene);
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /No space left/);
    assert.deepEqual(readdirSync(join(diskOf(scene, 'pvc-2'), '..')), []);
  });

  it('are not replaced if another node has filled them first', async () => {
    await using scene = aScene({ run: thenRun(() => write(scene, 'the guest’s', 'pvc-2')) });
    const volumes = await scene.open();
    writeSealed(scene);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});
    startsWith(diskOf(scene, 'pvc-2'), 'the guest');
    assert.deepEqual(readdirSync(join(diskOf(scene, 'pvc-2'), '..')).sort(), ['disk.format', 'disk.img']);
  });

  it('are not filled from an image that was changed to refer to other files', qemuImg, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeSealed(scene, 'qcow2');
    const image = join(snapshotDir(scene), 'disk.img');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', image]);
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /names a backing file/);
  });

  it('are not available to guests before they are filled', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    scene.bind('data', aVolumeFromSnapshot(HERE));
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), /it does not exist; expected a sealed one/);

    const prepared = await volumes.prepare(aVmi(claimed), scene.lookups, {});

    assert.equal(prepared.is === 'waiting' && prepared.reason, 'VolumeCopyPending');
    await assert.rejects(volumes.grow(aVolumeFromSnapshot(HERE)), /still being copied/);
    assert.equal(existsSync(diskOf(scene, 'pvc-2')), false);
  });

  it('are filled once', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    write(scene, 'one');
    await volumes.takeSnapshot(aLocalVolume(), HERE, {});
    await volumes.sealSnapshot(HERE);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});
    write(scene, 'two', 'pvc-2');
    await volumes.fill(aVolumeFromSnapshot(HERE), {});
    startsWith(diskOf(scene, 'pvc-2'), 'two');
  });

  it('leave nothing behind when they are removed before they are filled', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeSealed(scene);
    const signal = AbortSignal.abort(new Error('no longer wanted'));

    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), { signal }), /no longer wanted/);
    writeFileSync(`${diskOf(scene, 'pvc-2')}.new`, 'half');
    await volumes.removeData(aVolumeFromSnapshot(HERE));

    assert.equal(existsSync(join(diskOf(scene, 'pvc-2'), '..')), false);
  });

  it('are filled from our own snapshots only', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const volume = aVolumeFromSnapshot(HERE);
    volume.spec.csi!.volumeAttributes!['snapshot'] = 'node/node-1/../../etc';
    await assert.rejects(volumes.fill(volume, {}), /is not the handle of one of our snapshots/);
  });

  it('do not follow links', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    mkdirSync(join(scene.dir, 'elsewhere'));
    writeFileSync(join(scene.dir, 'elsewhere', 'disk.img'), 'secret');
    mkdirSync(join(scene.host.nodeDir, 'snapshots'));
    symlinkSync(join(scene.dir, 'elsewhere'), snapshotDir(scene));

    await assert.rejects(volumes.sealSnapshot(HERE), { code: 'ENOTDIR' });
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(HERE), {}), { code: 'ENOTDIR' });
    await assert.rejects(volumes.removeSnapshot(HERE), { code: 'ENOTDIR' });
    assert.equal(existsSync(join(scene.dir, 'elsewhere', 'disk.img')), true);
  });

  it('stay when their snapshot is removed', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    write(scene, 'one');
    await volumes.takeSnapshot(aLocalVolume(), HERE, {});
    await volumes.sealSnapshot(HERE);
    await volumes.fill(aVolumeFromSnapshot(HERE), {});

    await volumes.removeSnapshot(HERE);
    await volumes.removeSnapshot(HERE);

    assert.equal(existsSync(snapshotDir(scene)), false);
    startsWith(diskOf(scene, 'pvc-2'), 'one');
    await assert.rejects(volumes.sealSnapshot(HERE), /it does not exist/);
  });
});

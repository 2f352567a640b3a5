import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { formatSnapshotHandle, type SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import { SnapshotUnusableError, type Volumes } from '#node/volumes/volumes-port.ts';
import { parseArchive, buildArchive } from '#node/volumes/local/state/state-archive.ts';
import {
  aLocalVolume,
  aScene,
  DOMAIN_ID,
  isRoot,
  type VolumesScene,
} from '#node/volumes/local/testing/volumes-scene.ts';

const PLACE: SnapshotPlace = { scope: 'node', node: 'node-1', id: 'snapcontent-1' };
const UNUSED = { useOf: () => undefined };
const NEEDS_ROOT = { skip: isRoot ? false : 'only root may give files away' };
const NO_MOUNTS = { skip: mountSkipReason() };
const KEYS = 'the keys of the guest';

function mountSkipReason(): string | false {
  if (!isRoot) return 'only root may mount';
  try {
    execFileSync('losetup', ['--find'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'there are no loop devices';
  }
}

function aVolumeFromSnapshot(options: Parameters<typeof aLocalVolume>[0] = {}) {
  const volume = aLocalVolume({ name: 'pvc-2', storage: '10Mi', ...options });
  Object.assign(volume.spec.csi!.volumeAttributes!, { snapshot: formatSnapshotHandle(PLACE) });
  return volume;
}

/** Writes a state as a guest leaves it, with files that do not belong to the persistent state. */
function writeState(directory: string, keys = KEYS): void {
  mkdirSync(join(directory, 'tpm'), { recursive: true });
  writeFileSync(join(directory, 'tpm', 'tpm2-00.permall'), keys);
  writeFileSync(join(directory, 'tpm', 'TMP2-00.permall'), 'half');
  writeFileSync(join(directory, 'tpm', '.lock'), '');
  writeFileSync(join(directory, 'nvram.fd'), 'variables');
  writeFileSync(join(directory, 'nvram.fd.new'), 'half');
  writeFileSync(join(directory, 'lock'), '');
}

const stateOf = (scene: VolumesScene, name: string) => join(scene.host.nodeDir, 'volumes', name, 'state');

async function snapshotOf(scene: VolumesScene, volumes: Volumes, state: { domainId?: string } = {}): Promise<void> {
  await volumes.takeSnapshot(aLocalVolume(), PLACE, { state });
  await volumes.sealSnapshot(PLACE);
  assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'snapshots', PLACE.id)).sort(), [
    'disk.format',
    'sealed',
    'state.archive',
  ]);
}

describe('the snapshot of a persistent state', () => {
  it('contains only persistent files, also while the guest runs', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeState(stateOf(scene, 'pvc-1'));
    assert.equal(await volumes.hasStateSnapshot?.(PLACE), false);
    await snapshotOf(scene, volumes, { domainId: DOMAIN_ID });
    assert.equal(await volumes.hasStateSnapshot?.(PLACE), true);
    const archive = readFileSync(join(scene.host.nodeDir, 'snapshots', PLACE.id, 'state.archive'));
    assert.deepEqual(
      parseArchive(archive).map(({ name, content }) => [name, content.toString()]),
      [
        ['tpm/tpm2-00.permall', KEYS],
        ['nvram.fd', 'variables'],
      ],
    );
  });

  it('fills a volume, which guests cannot use before', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeState(stateOf(scene, 'pvc-1'));
    await snapshotOf(scene, volumes);
    scene.bind('state', aVolumeFromSnapshot());
    const prepare = () => volumes.prepareState(DOMAIN_ID, 'state', scene.lookups, {});
    const before = await prepare();
    assert.equal(before.is !== 'ready' && before.reason, 'VolumeCopyPending');
    await volumes.fill(aVolumeFromSnapshot(), {});
    assert.deepEqual(await prepare(), { is: 'ready', directory: stateOf(scene, 'pvc-2') });
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-2')), ['state']);
    assert.deepEqual(readdirSync(stateOf(scene, 'pvc-2')).sort(), ['nvram.fd', 'tpm']);
    assert.equal(readFileSync(join(stateOf(scene, 'pvc-2'), 'tpm', 'tpm2-00.permall'), 'utf8'), KEYS);
  });

  it('fills a volume once and does not replace later state', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeState(stateOf(scene, 'pvc-1'));
    await snapshotOf(scene, volumes);
    await volumes.fill(aVolumeFromSnapshot(), {});
    writeState(stateOf(scene, 'pvc-2'), 'newer keys');
    await volumes.fill(aVolumeFromSnapshot(), {});
    assert.equal(readFileSync(join(stateOf(scene, 'pvc-2'), 'tpm', 'tpm2-00.permall'), 'utf8'), 'newer keys');
  });

  it('creates files that only the agent can read', NEEDS_ROOT, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeState(stateOf(scene, 'pvc-1'));
    await snapshotOf(scene, volumes);
    await volumes.fill(aVolumeFromSnapshot(), {});
    const modes = ['', 'tpm', 'tpm/tpm2-00.permall', 'nvram.fd'].map((name) => {
      const { uid, mode } = statSync(join(stateOf(scene, 'pvc-2'), name));
      return [name, uid, (mode & 0o777).toString(8)];
    });
    assert.deepEqual(modes, [
      ['', 0, '711'],
      ['tpm', 0, '700'],
      ['tpm/tpm2-00.permall', 0, '600'],
      ['nvram.fd', 0, '600'],
    ]);
  });

  it('of an unused volume is empty', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    await snapshotOf(scene, volumes);
    await volumes.fill(aVolumeFromSnapshot(), {});
    assert.deepEqual(readdirSync(stateOf(scene, 'pvc-2')), []);
  });

  it('is refused if it is damaged', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    writeState(stateOf(scene, 'pvc-1'));
    await snapshotOf(scene, volumes);
    writeFileSync(join(scene.host.nodeDir, 'snapshots', PLACE.id, 'state.archive'), 'bytes');
    await assert.rejects(volumes.fill(aVolumeFromSnapshot(), {}), SnapshotUnusableError);
    assert.equal(existsSync(stateOf(scene, 'pvc-2')), false);
  });

  it('does not follow links of a guest', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    mkdirSync(join(stateOf(scene, 'pvc-1'), 'tpm'), { recursive: true });
    symlinkSync('/etc/passwd', join(stateOf(scene, 'pvc-1'), 'tpm', 'tpm2-00.permall'));
    await assert.rejects(volumes.takeSnapshot(aLocalVolume(), PLACE, { state: {} }), /ELOOP/);
  });
});

describe('the snapshot of a persistent state on a block volume', NO_MOUNTS, () => {
  const aBlock = () => aLocalVolume({ mode: 'Block', storage: '10Mi' });

  it('is read through the mount of the guest, or through a temporary one after the guest has ended', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    scene.bind('old', aBlock());
    scene.bind('new', aVolumeFromSnapshot({ mode: 'Block' }));
    try {
      const prepared = await volumes.prepareState(DOMAIN_ID, 'old', scene.lookups, {});
      assert.equal(prepared.is, 'ready');
      writeState(prepared.is === 'ready' ? prepared.directory : '');
      await volumes.takeSnapshot(aBlock(), PLACE, { state: { domainId: DOMAIN_ID } });
      const running = readFileSync(join(scene.host.nodeDir, 'snapshots', PLACE.id, 'state.archive'));
      // No other user is admitted meanwhile.
      await assert.rejects(volumes.takeSnapshot(aBlock(), PLACE, { state: {} }), /in use by another guest/);
      await volumes.release(DOMAIN_ID);
      await volumes.takeSnapshot(aBlock(), PLACE, { state: {} });
      const ended = readFileSync(join(scene.host.nodeDir, 'snapshots', PLACE.id, 'state.archive'));
      assert.deepEqual(ended, running);
      assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'state-mounts')), []);

      await volumes.sealSnapshot(PLACE);
      await volumes.fill(aVolumeFromSnapshot({ mode: 'Block' }), {});
      const filled = await volumes.prepareState(DOMAIN_ID, 'new', scene.lookups, {});
      assert.equal(filled.is, 'ready');
      const path = join(filled.is === 'ready' ? filled.directory : '', 'tpm', 'tpm2-00.permall');
      assert.equal(readFileSync(path, 'utf8'), KEYS);
    } finally {
      await volumes.release(DOMAIN_ID);
    }
  });
});

describe('the content of a persistent state', () => {
  async function upload(scene: VolumesScene, volumes: Volumes, archive: Buffer): Promise<void> {
    const opened = await volumes.contents!.replace('state', scene.lookups, UNUSED);
    try {
      await opened.receive(
        { size: archive.length, format: 'raw' },
        (async function* () {
          yield archive;
        })(),
        {},
      );
    } finally {
      await opened.close();
    }
  }

  function mark(scene: VolumesScene): void {
    const { metadata } = scene.claims.get('state')!;
    Object.assign(metadata, { labels: { [STATE_LABEL]: 'web' }, annotations: { [UPLOAD_ANNOTATION]: 'true' } });
  }

  it('is exported and imported as an archive', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    scene.bind('state', aLocalVolume());
    mark(scene);
    writeState(stateOf(scene, 'pvc-1'));
    const content = await volumes.contents!.open('state', scene.lookups, UNUSED);
    const pieces: Buffer[] = [];
    for await (const piece of content.chunks()) pieces.push(piece);
    await content.close();
    const archive = Buffer.concat(pieces);
    assert.equal(archive.length, content.header.size);

    const files = parseArchive(archive).map((one) => ({ ...one, content: Buffer.from(`imported ${one.name}`) }));
    await upload(scene, volumes, buildArchive(files));
    assert.equal(readFileSync(join(stateOf(scene, 'pvc-1'), 'nvram.fd'), 'utf8'), 'imported nvram.fd');
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-1')), ['state']);
  });

  it('is refused without a change of the volume if it is damaged', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    scene.bind('state', aLocalVolume());
    mark(scene);
    writeState(stateOf(scene, 'pvc-1'));
    await assert.rejects(upload(scene, volumes, Buffer.from('a disk')), /not an archive of persistent state/);
    assert.equal(readFileSync(join(stateOf(scene, 'pvc-1'), 'nvram.fd'), 'utf8'), 'variables');
  });

  it('becomes the file system of a block volume', NEEDS_ROOT, async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    scene.bind('state', aLocalVolume({ mode: 'Block', storage: '10Mi' }));
    mark(scene);
    await upload(scene, volumes, buildArchive([{ name: 'nvram.fd', content: Buffer.from('variables') }]));
    const image = join(scene.host.nodeDir, 'volumes', 'pvc-1', 'disk.img');
    assert.equal(
      execFileSync('debugfs', ['-R', 'cat /state/nvram.fd', image], { stdio: 'pipe' }).toString(),
      'variables',
    );
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes', 'pvc-1')), ['disk.img']);
  });
});

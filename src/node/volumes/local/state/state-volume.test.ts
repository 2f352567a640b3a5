import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import type { StatePreparation, Volumes } from '#node/volumes/volumes-port.ts';
import { ensureImage } from '#node/volumes/local/content/disk-image.ts';
import { parseMounts } from '#lib/mounts.ts';
import { openOwnDirectory } from '#node/volumes/local/kinds/persistent-volume.ts';
import { ProgramError, runCommand } from '#node/volumes/local/run-command.ts';
import { detectContent } from '#node/volumes/local/state/state-file-system.ts';
import { prepareState } from '#node/volumes/local/state/state-volume.ts';
import { blockStateSkipReason } from '#node/volumes/local/testing/block-support.ts';
import {
  aClaim,
  aLocalVolume,
  aScene,
  aVmi,
  aVolume,
  DOMAIN_ID,
  isRoot,
  type VolumesScene,
} from '#node/volumes/local/testing/volumes-scene.ts';

const OTHER_ID = '6f3c0a0e-5f43-4f6f-8a53-6d7a39d3b1c4';
const MI = 2 ** 20;

function directoryOf(prepared: StatePreparation): string {
  if (prepared.is !== 'ready') throw new Error(`${prepared.is}: ${prepared.reason} ${prepared.message}`);
  return prepared.directory;
}

function reasonOf(prepared: StatePreparation): string {
  return prepared.is === 'ready' ? 'ready' : `${prepared.is} ${prepared.reason}`;
}

const prepare = (volumes: Volumes, scene: VolumesScene, id = DOMAIN_ID, ended: readonly string[] = []) =>
  volumes.prepareState(id, 'state', scene.lookups, { hasEnded: (other) => ended.includes(other) });

/** Writes files as guests store them. */
function writeState(directory: string, text: string): void {
  mkdirSync(join(directory, 'tpm'), { recursive: true });
  writeFileSync(join(directory, 'tpm', 'permall'), text);
}

const readState = (directory: string) => readFileSync(join(directory, 'tpm', 'permall'), 'utf8');

describe('persistent state on volumes of mode Filesystem', () => {
  it('is in a directory of the volume, stays for the next domain, and is removed with the data of the volume', async () => {
    await using scene = aScene();
    scene.bind('state', aLocalVolume());
    const volumes = await scene.open();

    const directory = directoryOf(await prepare(volumes, scene));
    writeState(directory, 'a secret');
    await volumes.release(DOMAIN_ID);
    const next = directoryOf(await prepare(await scene.open(), scene, OTHER_ID));

    assert.equal(directory, join(scene.host.nodeDir, 'volumes/pvc-1/state'));
    assert.equal(next, directory);
    assert.equal(readState(next), 'a secret');
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes/pvc-1')), ['state']);
    await volumes.removeData(aLocalVolume());
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'volumes')), []);
  });

  it('can be in a directory of an administrator, which must exist', async () => {
    await using scene = aScene();
    const path = join(scene.dir, 'his');
    scene.bind('state', aVolume({ hostPath: { path } }));
    const volumes = await scene.open();
    assert.equal(reasonOf(await prepare(volumes, scene)), 'waiting VolumePathMissing');
    mkdirSync(path);
    assert.equal(directoryOf(await prepare(volumes, scene)), join(path, 'state'));
  });

  const leading: Record<string, (directory: string, outside: string) => void> = {
    'a link': (directory, outside) => symlinkSync(outside, join(directory, 'nvram.fd')),
    'a link to a directory': (directory, outside) => symlinkSync(join(outside, '..'), join(directory, 'tpm')),
    'a second name of a file': (directory, outside) => linkSync(outside, join(directory, 'nvram.fd')),
    'a pipe': (directory) => void execFileSync('mkfifo', [join(directory, 'nvram.fd')]),
  };
  for (const [name, put] of Object.entries(leading)) {
    it(`is refused if it contains ${name}`, { skip: !isRoot && 'requires root' }, async () => {
      await using scene = aScene();
      scene.bind('state', aLocalVolume());
      const outside = join(scene.dir, 'outside');
      writeFileSync(outside, '');
      const volumes = await scene.open();
      put(directoryOf(await prepare(volumes, scene)), outside);
      assert.equal(reasonOf(await prepare(volumes, scene)), 'failed StateRefused');
      assert.equal(statSync(outside).uid, 0);
    });
  }

  const refusals: Record<string, { bind: (scene: VolumesScene) => void; want: string }> = {
    'there is no claim': { bind: () => undefined, want: 'waiting FailedMount' },
    'the claim is not bound': {
      bind: ({ claims }) => claims.set('state', aClaim('state', { phase: 'Pending' })),
      want: 'waiting VolumeNotBound',
    },
    'the data is on another node': {
      bind: (scene) => scene.bind('state', aLocalVolume({ node: 'node-2' })),
      want: 'failed VolumeOnOtherNode',
    },
    'it is read-only': {
      bind: (scene) => scene.bind('state', aVolume({ accessModes: ['ReadOnlyMany'], local: { path: '/tmp' } })),
      want: 'failed VolumeUnsupported',
    },
    'a device is not a block device': {
      bind: (scene) => scene.bind('state', aVolume({ volumeMode: 'Block', local: { path: '/dev/null' } })),
      want: 'failed VolumeUnsupported',
    },
  };
  for (const [name, { bind, want }] of Object.entries(refusals)) {
    it(`is refused if ${name}`, async () => {
      await using scene = aScene();
      bind(scene);
      assert.equal(reasonOf(await prepare(await scene.open(), scene)), want);
    });
  }
});

function at(offset: number, ...bytes: number[]): Buffer {
  const beginning = Buffer.alloc(4096);
  beginning.set(bytes, offset);
  return beginning;
}

const contents: Record<string, { beginning: Buffer; want: ReturnType<typeof detectContent> }> = {
  'zeros are empty': { beginning: Buffer.alloc(4096), want: 'empty' },
  'a single bit is other data': { beginning: at(4095, 1), want: 'other' },
  'the magic number of ext4 is ext4': { beginning: at(1080, 0x53, 0xef), want: 'ext4' },
  'the magic number at another offset is other data': { beginning: at(1081, 0x53, 0xef), want: 'other' },
  'our mark is begun, whatever follows': {
    beginning: Buffer.concat([
      Buffer.from('selfsame: a file system for state is being made here\n'),
      Buffer.alloc(2000, 1),
    ]),
    want: 'begun',
  },
};
for (const [name, { beginning, want }] of Object.entries(contents)) {
  test(`detects the content of a device: ${name}`, () => assert.equal(detectContent(beginning), want));
}

const mountsBelow = (scene: VolumesScene) =>
  parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map(({ target }) => target)
    .filter((target) => target.startsWith(scene.dir));
const backingFiles = () => String(execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']));

async function withBlock(run: (scene: VolumesScene, volumes: Volumes) => Promise<void>): Promise<void> {
  await using scene = aScene();
  scene.bind('state', aLocalVolume({ mode: 'Block', storage: '10Mi' }));
  const volumes = await scene.open();
  try {
    await run(scene, volumes);
  } finally {
    await volumes.releaseUnwanted(() => false);
  }
  assert.deepEqual(mountsBelow(scene), []);
  assert.equal(backingFiles().includes(scene.dir), false);
}

describe('persistent state on block volumes', { skip: blockStateSkipReason() }, () => {
  it('is mounted for its domain only, and stays for the next one', async () => {
    await withBlock(async (scene, volumes) => {
      const directory = directoryOf(await prepare(volumes, scene));
      assert.equal(directory, join(scene.host.nodeDir, 'state-mounts', DOMAIN_ID, 'state'));
      writeState(directory, 'a secret');
      // A repeated call, as by the next agent after a crash.
      assert.equal(directoryOf(await prepare(await scene.open(), scene)), directory);
      assert.equal(mountsBelow(scene).length, 1);
      assert.equal(reasonOf(await prepare(volumes, scene, OTHER_ID)), 'waiting VolumeInUse');

      await volumes.release(DOMAIN_ID);
      assert.deepEqual(mountsBelow(scene), []);
      await volumes.release(DOMAIN_ID);

      assert.equal(readState(directoryOf(await prepare(volumes, scene, OTHER_ID))), 'a secret');
      assert.equal(existsSync(directory), false);
    });
  });

  it('is handed over from a domain that has ended, but not while a file is open', async () => {
    await withBlock(async (scene, volumes) => {
      const directory = directoryOf(await prepare(volumes, scene));
      writeState(directory, 'a secret');
      const reader = await open(join(directory, 'tpm', 'permall'));
      assert.equal(reasonOf(await prepare(volumes, scene, OTHER_ID, [DOMAIN_ID])), 'waiting FailedMount');
      await assert.rejects(volumes.release(DOMAIN_ID), /umount/);
      await reader.close();

      assert.equal(readState(directoryOf(await prepare(volumes, scene, OTHER_ID, [DOMAIN_ID]))), 'a secret');
      assert.equal(mountsBelow(scene).length, 1);
    });
  });

  it('of unwanted domains is unmounted, and that of others stays', async () => {
    await withBlock(async (scene, volumes) => {
      const directory = directoryOf(await prepare(volumes, scene));
      await volumes.releaseUnwanted((id) => id === DOMAIN_ID);
      assert.deepEqual(mountsBelow(scene), [join(directory, '..')]);
    });
  });

  it('cannot be a disk at the same time, neither of its own guest nor of another', async () => {
    await withBlock(async (scene, volumes) => {
      directoryOf(await prepare(volumes, scene));
      const vmi = aVmi([{ name: 'root', persistentVolumeClaim: { claimName: 'state' } }]);
      for (const uid of [DOMAIN_ID, OTHER_ID]) {
        const disk = await volumes.prepare({ ...vmi, metadata: { ...vmi.metadata, uid } }, scene.lookups, {});
        assert.equal(disk.is === 'waiting' && disk.reason, 'VolumeInUse');
      }
    });
  });

  it('is never created over existing data', async () => {
    await withBlock(async (scene, volumes) => {
      const place = { is: 'own', root: scene.host.nodeDir, name: 'pvc-1', block: true, bytes: 10 * MI } as const;
      await using directory = await openOwnDirectory(place);
      await ensureImage(directory, { name: 'disk.img', createBytes: 10 * MI, alwaysRaw: true }, scene.host);
      const image = Buffer.alloc(10 * MI);
      image.write('data', MI - 4);
      writeFileSync(join(directory.path, 'disk.img'), image);

      assert.equal(reasonOf(await prepare(volumes, scene)), 'failed StateRefused');

      assert.ok(readFileSync(join(directory.path, 'disk.img')).equals(image));
    });
  });

  it('is created again if its creation was interrupted', async () => {
    await using scene = aScene();
    scene.bind('state', aLocalVolume({ mode: 'Block', storage: '10Mi' }));
    const volumes = await scene.open();
    const image = join(scene.host.nodeDir, 'volumes/pvc-1/disk.img');
    try {
      const directory = directoryOf(await prepare(volumes, scene));
      writeState(directory, 'a secret');
      await volumes.release(DOMAIN_ID);
      const cut = readFileSync(image);
      cut.fill(0, 0, 4096).write('selfsame: a file system for state is being made here\n');
      writeFileSync(image, cut);

      assert.deepEqual(readdirSync(directoryOf(await prepare(volumes, scene))), []);
    } finally {
      await volumes.releaseUnwanted(() => false);
    }
    execFileSync('e2fsck', ['-f', '-n', image], { stdio: 'pipe' });
  });

  it('waits without a change if it cannot be created', async () => {
    const run: typeof runCommand = async (command, args, options) => {
      if (command === 'mkfs.ext4') throw new ProgramError('mkfs.ext4', [], 'ENOENT');
      return runCommand(command, args, options);
    };
    await using scene = aScene({ run });
    scene.bind('state', aLocalVolume({ mode: 'Block' }));
    const volumes = await scene.open();
    try {
      assert.equal(reasonOf(await prepare(volumes, scene)), 'waiting FailedMount');
      const image = readFileSync(join(scene.host.nodeDir, 'volumes/pvc-1/disk.img'));
      assert.ok(image.equals(Buffer.alloc(image.length)));
    } finally {
      await volumes.releaseUnwanted(() => false);
    }
  });
});

test('persistent state on block volumes is refused if the agent is not root', async () => {
  await using scene = aScene();
  scene.bind('state', aLocalVolume({ mode: 'Block' }));
  const user = { domainId: DOMAIN_ID, hasEnded: () => false };
  const prepared = await prepareState(scene.volumes.get('pvc-1')!, user, { ...scene.host, isRoot: false });
  assert.equal(reasonOf(prepared), 'failed VolumeUnsupported');
});

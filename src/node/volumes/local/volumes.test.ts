import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ProgramError } from '#node/volumes/local/run-command.ts';
import {
  aClaim,
  aLocalVolume,
  aScene,
  aVmi,
  aVolume,
  DOMAIN_ID,
  hasProgram,
  readyVolume,
} from '#node/volumes/local/testing/volumes-scene.ts';

const MI = 1024 * 1024;
const claimed = [{ name: 'root', persistentVolumeClaim: { claimName: 'data' } }];
const qemuImg = hasProgram('qemu-img') ? {} : { skip: 'qemu-img is not installed' };

describe('volumes of claims', () => {
  it('creates a sparse raw image of the capacity, once', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume({ storage: '64Mi' }));
    const volumes = await scene.open();

    const { source, readonly } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');

    assert.equal(source.path, join(scene.host.nodeDir, 'volumes', 'pvc-1', 'disk.img'));
    assert.equal(source.format, 'raw');
    assert.equal(readonly, false);
    assert.equal(statSync(source.path).size, 64 * MI);
    assert.ok(statSync(source.path).blocks * 512 < MI);
    writeFileSync(source.path, 'data of the guest', { flag: 'r+' });
    readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
    assert.ok(readFileSync(source.path).subarray(0, 32).includes('data of the guest'));
  });

  it('grows the image with its volume and never shrinks it', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const sizes = [];
    for (const storage of ['8Mi', '16Mi', '4Mi']) {
      scene.bind('data', aLocalVolume({ storage }));
      const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
      sizes.push(statSync(source.path).size / MI);
    }
    assert.deepEqual(sizes, [8, 16, 16]);
    assert.equal(await volumes.grow(aLocalVolume({ storage: '32Mi' })), 32 * MI);
    assert.equal(await volumes.grow(aLocalVolume({ storage: '8Mi' })), 32 * MI);
  });

  it('completes an image that a killed process has only started', async () => {
    await using scene = aScene();
    const dir = join(scene.host.sharedDir, 'volumes', 'pvc-1');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'disk.img'), '');
    scene.bind('data', aLocalVolume({ scope: 'shared' }));

    const prepared = await (await scene.open()).prepare(aVmi(claimed), scene.lookups, {});

    assert.equal(statSync(readyVolume(prepared, 'root').source.path).size, 8 * MI);
  });

  it('accepts a qcow2 image that a user has put there, and grows it', qemuImg, async () => {
    await using scene = aScene();
    const dir = join(scene.host.nodeDir, 'volumes', 'pvc-1');
    mkdirSync(dir, { recursive: true });
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(dir, 'disk.img'), '1M']);
    scene.bind('data', aLocalVolume());

    const prepared = await (await scene.open()).prepare(aVmi(claimed), scene.lookups, {});

    const { source } = readyVolume(prepared, 'root');
    assert.equal(source.format, 'qcow2');
    const info: unknown = JSON.parse(String(execFileSync('qemu-img', ['info', '--output=json', source.path])));
    assert.equal((info as { 'virtual-size': number })['virtual-size'], 8 * MI);
  });

  const damages: Record<string, { damage: (path: string) => void; storage?: string; want: RegExp }> = {
    'its header is cut off': { damage: (path) => truncateSync(path, 50), want: /its qcow2 header is cut off/ },
    'its header is overwritten': {
      damage: (path) => writeFileSync(path, 'XXXX', { flag: 'r+' }),
      want: /no longer begins with a qcow2 header, or was replaced; in that case remove ".*disk\.format"/,
    },
    'its file is cut off before its tables': {
      damage: (path) => truncateSync(path, 4096),
      want: /its file is cut off: it has 4096 bytes, and a table is at \d+/,
    },
    'qemu-img cannot read its tables': {
      damage: (path) => {
        const image = readFileSync(path);
        image.writeUInt32BE(0xffff_ffff, 36);
        writeFileSync(path, image);
      },
      storage: '16Mi',
      want: /qemu-img resize: .*L1 table/,
    },
  };
  for (const [name, { damage, storage = '8Mi', want }] of Object.entries(damages)) {
    it(`names the volume and the claim of a damaged image: ${name}`, qemuImg, async () => {
      await using scene = aScene();
      const dir = join(scene.host.nodeDir, 'volumes', 'pvc-1');
      mkdirSync(dir, { recursive: true });
      execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(dir, 'disk.img'), '8M']);
      scene.bind('data', aLocalVolume({ storage }));
      const volumes = await scene.open();
      if (storage === '8Mi') readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
      damage(join(dir, 'disk.img'));

      const prepared = await volumes.prepare(aVmi(claimed), scene.lookups, {});

      assert.ok(prepared.is === 'failed' && prepared.reason === 'ImageDamaged', JSON.stringify(prepared));
      assert.match(
        prepared.message,
        /^Cannot prepare volume "root" \(PersistentVolumeClaim "data"\): Cannot use image /,
      );
      assert.match(prepared.message, want);
      assert.match(
        prepared.message,
        /; restore the claim from a snapshot, or upload the image again into a new claim$/,
      );
    });
  }

  it('does not accept a raw disk as qcow2 after its guest has written a qcow2 header', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    const volumes = await scene.open();
    const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
    writeFileSync(source.path, Buffer.from('QFI\xfb\0\0\0\x03', 'latin1'), { flag: 'r+' });

    const prepared = await volumes.prepare(aVmi(claimed), scene.lookups, {});

    assert.equal(prepared.is === 'failed' && prepared.reason, 'ImageFormatChanged');
  });

  it('refuses an image that refers to other files', qemuImg, async () => {
    await using scene = aScene();
    writeFileSync(join(scene.dir, 'secret'), 'x'.repeat(4096));
    const args = ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', join(scene.dir, 'secret')];
    execFileSync('qemu-img', [...args, join(scene.dir, 'disk.img')]);
    scene.bind('data', aVolume({ hostPath: { path: scene.dir } }));

    const prepared = await (await scene.open()).prepare(aVmi(claimed), scene.lookups, {});

    assert.equal(prepared.is === 'failed' && prepared.reason, 'ImageRefused');
  });

  it('does not follow a link instead of an image or its directory', async () => {
    await using scene = aScene();
    mkdirSync(join(scene.host.nodeDir, 'volumes'));
    mkdirSync(join(scene.dir, 'outside'));
    symlinkSync(join(scene.dir, 'outside'), join(scene.host.nodeDir, 'volumes', 'pvc-1'));
    scene.bind('data', aLocalVolume());
    const volumes = await scene.open();

    const prepared = await volumes.prepare(aVmi(claimed), scene.lookups, {});
    assert.match(prepared.is === 'waiting' ? prepared.message : '', /node-1\/volumes\/pvc-1/);
    assert.deepEqual(readdirSync(join(scene.dir, 'outside')), []);

    symlinkSync('/etc/hostname', join(scene.dir, 'disk.img'));
    scene.bind('data', aVolume({ hostPath: { path: scene.dir } }));
    assert.equal((await volumes.prepare(aVmi(claimed), scene.lookups, {})).is, 'failed');
  });

  it('uses the directory of an administrator, and waits for it', async () => {
    await using scene = aScene();
    const path = join(scene.dir, 'mounted');
    scene.bind('data', aVolume({ local: { path } }));
    const volumes = await scene.open();

    const early = await volumes.prepare(aVmi(claimed), scene.lookups, {});
    assert.equal(early.is === 'waiting' && early.reason, 'VolumePathMissing');
    mkdirSync(path);
    const { source } = readyVolume(await volumes.prepare(aVmi(claimed), scene.lookups, {}), 'root');
    assert.equal(source.path, join(path, 'disk.img'));
    assert.deepEqual(readdirSync(path), ['disk.img']);
  });

  it('removes the data of a volume, and a second time does nothing', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    scene.bind('kept', aLocalVolume({ name: 'pvc-2' }));
    const volumes = await scene.open();
    const both = [...claimed, { name: 'kept', persistentVolumeClaim: { claimName: 'kept' } }];
    const prepared = await volumes.prepare(aVmi(both), scene.lookups, {});

    await volumes.removeData(aLocalVolume());
    await volumes.removeData(aLocalVolume());

    assert.equal(existsSync(readyVolume(prepared, 'root').source.path), false);
    assert.equal(existsSync(readyVolume(prepared, 'kept').source.path), true);
    await assert.rejects(
      volumes.removeData(aVolume({ hostPath: { path: '/etc' } })),
      /does not belong to selfsame\.io\/local/,
    );
  });

  it('creates no disk that the file system can never hold', async () => {
    await using scene = aScene();
    const volumes = await scene.open({ usableBytes: async () => 4 * MI });
    const scratch = (capacity: string) => aVmi([{ name: 'scratch', emptyDisk: { capacity } }]);
    const refused = await volumes.prepare(scratch('100Ti'), scene.lookups, {});
    assert.match(
      'message' in refused ? refused.message : '',
      /its file system can hold at most 4194304; use a smaller/,
    );
    assert.equal((await volumes.prepare(scratch('4Mi'), scene.lookups, {})).is, 'ready');
  });

  it('creates no image below the floor of free space, and uses those that exist', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    const below = await scene.open({ freeBytes: async () => -1 });
    const refused = await below.prepare(aVmi(claimed), scene.lookups, {});
    assert.deepEqual([refused.is, 'reason' in refused && refused.reason], ['waiting', 'NoSpaceLeft']);
    await (await scene.open()).prepare(aVmi(claimed), scene.lookups, {});
    assert.equal((await below.prepare(aVmi(claimed), scene.lookups, {})).is, 'ready');
  });
});

describe('volumes of domains', () => {
  const own = [
    { name: 'scratch', emptyDisk: { capacity: '4Mi' } },
    { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
  ];

  it('creates them in the directory of the domain, keeps them on repeated calls, and removes them', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    const prepared = await volumes.prepare(aVmi(own), scene.lookups, {});
    const scratch = readyVolume(prepared, 'scratch').source.path;
    assert.equal(scratch, join(scene.host.nodeDir, 'domains', DOMAIN_ID, 'volumes', 'scratch.img'));
    assert.equal(statSync(scratch).size, 4 * MI);
    writeFileSync(scratch, 'written', { flag: 'r+' });

    assert.deepEqual(await volumes.prepare(aVmi(own), scene.lookups, {}), prepared);
    assert.ok(readFileSync(scratch).subarray(0, 16).includes('written'));

    await volumes.release(DOMAIN_ID);
    await volumes.release(DOMAIN_ID);
    assert.deepEqual(readdirSync(join(scene.host.nodeDir, 'domains')), []);
  });

  it('does not remove files of the hypervisor from the directory of the domain', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    await volumes.prepare(aVmi(own), scene.lookups, {});
    const domain = join(scene.host.nodeDir, 'domains', DOMAIN_ID);
    writeFileSync(join(domain, 'domain.json'), '{}');

    await volumes.release(DOMAIN_ID);

    assert.deepEqual(readdirSync(domain), ['domain.json']);
  });

  it('creates an overlay over a claim, which keeps its data', qemuImg, async () => {
    await using scene = aScene();
    scene.bind('base', aLocalVolume());
    const volumes = await scene.open();
    const vmi = aVmi([{ name: 'root', ephemeral: { persistentVolumeClaim: { claimName: 'base' } } }]);

    const { source } = readyVolume(await volumes.prepare(vmi, scene.lookups, {}), 'root');

    assert.equal(source.format, 'qcow2');
    const info = JSON.parse(String(execFileSync('qemu-img', ['info', '--output=json', source.path]))) as {
      'backing-filename': string;
      'full-backing-filename': string;
    };
    assert.equal(info['backing-filename'], '../../../volumes/pvc-1/disk.img');
    const made = lstatSync(source.path).ino;
    await volumes.prepare(vmi, scene.lookups, {});
    assert.equal(lstatSync(source.path).ino, made);
    await volumes.release(DOMAIN_ID);
    assert.equal(existsSync(join(scene.host.nodeDir, 'volumes', 'pvc-1', 'disk.img')), true);
  });

  it('waits with the message of a failed program', async () => {
    const run = async () => {
      throw new ProgramError('qemu-img', ['create'], 'no space');
    };
    await using scene = aScene({ run });
    scene.bind('base', aLocalVolume());
    const vmi = aVmi([{ name: 'root', ephemeral: { persistentVolumeClaim: { claimName: 'base' } } }]);

    const prepared = await (await scene.open()).prepare(vmi, scene.lookups, {});

    assert.match(prepared.is === 'waiting' ? prepared.message : '', /volume "root".*no space/);
  });

  it('refuses a path as the name of a volume', async () => {
    await using scene = aScene();
    const prepared = await (
      await scene.open()
    ).prepare(aVmi([{ name: '../x', emptyDisk: { capacity: '1Mi' } }]), scene.lookups, {});
    assert.equal(prepared.is === 'failed' && prepared.reason, 'VolumeRefused');
    assert.equal(existsSync(join(scene.host.nodeDir, 'domains')), false);
  });

  it('leaves out missing volumes of optional disks and waits for all others', async () => {
    await using scene = aScene();
    scene.bind('data', aLocalVolume());
    const volumes = await scene.open();
    const lost = [...claimed, { name: 'extra', persistentVolumeClaim: { claimName: 'gone' } }];
    const disks = (optional: boolean) => [{ name: 'root' }, { name: 'extra', optional }];
    const vmi = (optional: boolean) => {
      const made = aVmi(lost);
      return { ...made, spec: { ...made.spec, domain: { devices: { disks: disks(optional) } } } };
    };

    const left = await volumes.prepare(vmi(true), scene.lookups, {});
    const message = 'persistentvolumeclaim "gone" not found';
    assert.deepEqual(left.is === 'ready' && [[...left.volumes.keys()], left.missing], [
      ['root'],
      [{ name: 'extra', message }],
    ]);
    assert.deepEqual(await volumes.prepare(vmi(false), scene.lookups, {}), {
      ...{ is: 'waiting', reason: 'FailedMount', message },
    });
    // A volume that is to be hotplugged is not left out.
    assert.equal((await volumes.prepare(vmi(true), scene.lookups, { names: ['extra'] })).is, 'waiting');
    // It exists but is not ready, so it is waited for.
    scene.claims.set('gone', aClaim('gone', { phase: 'Pending' }));
    const pending = await volumes.prepare(vmi(true), scene.lookups, {});
    assert.equal(pending.is === 'waiting' && pending.reason, 'VolumeNotBound');
  });

  it('refuses a volume of an unknown kind', async () => {
    await using scene = aScene();
    const prepared = await (await scene.open()).prepare(aVmi([{ name: 'x' }]), scene.lookups, {});
    assert.equal(prepared.is === 'failed' && prepared.reason, 'VolumeUnsupported');
  });

  it('removes disks of unwanted domains that have no files of the hypervisor', async () => {
    await using scene = aScene();
    const volumes = await scene.open();
    await volumes.prepare(aVmi([{ name: 'x', emptyDisk: { capacity: '1Mi' } }]), scene.lookups, {});
    const domains = join(scene.host.nodeDir, 'domains');
    for (const id of ['left', 'of-the-hypervisor']) mkdirSync(join(domains, id, 'volumes'), { recursive: true });
    writeFileSync(join(domains, 'left', 'volumes', 'x.img'), '');
    writeFileSync(join(domains, 'of-the-hypervisor', 'domain.json'), '');
    writeFileSync(join(domains, 'a-file'), '');

    await volumes.releaseUnwanted((id) => id === DOMAIN_ID);

    assert.deepEqual(readdirSync(domains).sort(), [DOMAIN_ID, 'a-file', 'of-the-hypervisor'].sort());
    assert.equal(existsSync(join(domains, DOMAIN_ID, 'volumes', 'x.img')), true);
  });
});

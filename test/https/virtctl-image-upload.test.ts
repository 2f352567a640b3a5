/** virtctl image-upload: the real API, a real node endpoint and real files, without guests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { BOOT_FIRMWARE_ANNOTATION } from '#api/storage/boot-firmware.ts';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '#kube/core-kinds.ts';
import { LOCAL_PROVISIONER } from '#api/names.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { formatStorageSize } from '#api/storage/storage-size.ts';
import type { DiskUpload } from '#node/volumes/volumes-port.ts';
import { startCuttingProxy } from '#test/support/cutting-proxy.ts';
import { NODE } from '#test/scenarios/subresources-scene.ts';
import { DiskScene } from '#test/support/disk-scene.ts';

const MIB = 1024 * 1024;
/** Random content with the signature of a boot sector. */
function aDisk(bytes: number): Buffer {
  const disk = randomBytes(bytes);
  disk.writeUInt16BE(0x55aa, 510);
  // An MBR with these flags is not taken for a partition table.
  disk.writeUInt8(0x01, 446);
  return disk;
}
const CONTENT = Buffer.concat([aDisk(MIB), Buffer.alloc(MIB), randomBytes(MIB)]);
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** A disk with one partition, up to its end. */
function aPartitionedDisk(bytes: number): Buffer {
  const disk = Buffer.alloc(bytes);
  disk.writeUInt8(0x83, 446 + 4);
  disk.writeUInt32LE(2048, 446 + 8);
  disk.writeUInt32LE(bytes / 512 - 2048, 446 + 12);
  disk.writeUInt16BE(0x55aa, 510);
  return disk;
}

let disks: DiskScene;
const fileOf = (name: string) => join(disks.dir, name);
const upload = (claim: string, file: string, ...more: string[]) =>
  disks.scene.virtctl('image-upload', 'pvc', claim, '--image-path', fileOf(file), ...more);
const make = ['--size=4Mi', '--storage-class=manual'];
const beginningOf = (claim: string) => readFileSync(disks.imageOf(claim)).subarray(0, CONTENT.length);
const waitsForUpload = async (claim: string) =>
  (await disks.readClaim(claim)).metadata.annotations?.[UPLOAD_ANNOTATION] === 'true';

before(async () => {
  disks = await DiskScene.start();
  writeFileSync(fileOf('a.raw'), CONTENT);
  writeFileSync(fileOf('a.raw.gz'), gzipSync(CONTENT));
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', fileOf('a.raw'), fileOf('a.qcow2')]);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', fileOf('a.raw'), fileOf('backed.qcow2')]);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', fileOf('large.qcow2'), '8M']);
  execFileSync('qemu-img', [
    'create',
    '-q',
    '-f',
    'qcow2',
    '-o',
    `data_file=${fileOf('data')}`,
    fileOf('split.qcow2'),
    '1M',
  ]);
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'vmdk', fileOf('a.raw'), fileOf('a.vmdk')]);
  writeFileSync(fileOf('cut.qcow2'), readFileSync(fileOf('a.qcow2')).subarray(0, MIB));
  writeFileSync(fileOf('cut.qcow2.gz'), gzipSync(readFileSync(fileOf('cut.qcow2'))));
  writeFileSync(fileOf('cut.raw'), aPartitionedDisk(64 * MIB).subarray(0, 2 * MIB));
  writeFileSync(fileOf('SHA256SUMS'), `${sha256(CONTENT)}  a.raw\n`);
  writeFileSync(fileOf('page.html'), '<!DOCTYPE html>\n<title>404 Not Found</title>\n');
  writeFileSync(fileOf('note.txt.gz'), gzipSync('a note about disks\n'));
  writeFileSync(fileOf('noise'), Buffer.alloc(MIB, 0xa5));
  execFileSync('tar', ['-cf', fileOf('disk.tar'), '-C', disks.dir, 'a.raw']);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', fileOf('void.qcow2'), '0']);
  writeFileSync(fileOf('a.zst.gz'), gzipSync(Buffer.from('28b52ffd00', 'hex')));
  writeFileSync(fileOf('cut.gz'), gzipSync(CONTENT).subarray(0, MIB));
  writeFileSync(fileOf('empty.raw'), '');
});
after(async () => await disks?.stop());

/** Records the number of bytes of each connection. */
const counting =
  (received: number[]) =>
  (one: DiskUpload): DiskUpload => ({
    ...one,
    async receive(header, chunks, options) {
      let bytes = 0;
      async function* counted() {
        for await (const chunk of chunks) {
          bytes += chunk.length;
          yield chunk;
        }
      }
      try {
        await one.receive(header, counted(), options);
      } finally {
        received.push(bytes);
      }
    },
  });

suite('virtctl image-upload', () => {
  for (const file of ['a.raw', 'a.qcow2', 'a.raw.gz']) {
    test(`creates a claim and fills it from ${file}`, async () => {
      const claim = `new-${file.replaceAll('.', '-')}`;
      await disks.createVolumeFor(claim);
      const { code, out, err } = await upload(claim, file, ...make);
      assert.equal(code, 0, err);
      assert.match(
        out,
        new RegExp(`^PersistentVolumeClaim default/${claim} created\nUploading .* successfully, sha256 \\w{64}\n$`),
      );
      assert.match(err, /: \d\.\d MiB\n.*: done, /);
      assert.ok(beginningOf(claim).equals(CONTENT), 'the disk has the raw content');
      assert.equal(readFileSync(disks.imageOf(claim)).length, 4 * MIB, 'the disk is as large as the claim');
      assert.equal(readFileSync(join(disks.directoryOf(claim), 'disk.format'), 'utf8'), 'raw\n');
      assert.equal(await waitsForUpload(claim), false, 'guests can use the claim');
    });
  }

  test('resumes after a broken connection, and sends no byte twice', async () => {
    const received: number[] = [];
    disks.wrap = counting(received);
    await disks.createVolumeFor('resumed');
    const wire = await startCuttingProxy(disks.scene.front.admin.server, { afterBytes: 1.5 * MIB, times: 1 });
    const { code, out, err } = await upload('resumed', 'a.raw', ...make, '--server', wire.url);
    await wire.stop();
    disks.wrap = (one) => one;
    assert.equal(code, 0, err);
    assert.match(err, /retrying\n(?:.*\n)*.*: resuming at \d\.\d MiB of 3\.0 MiB\n/);
    assert.equal(received.length, 2);
    assert.ok(received[0]! > 0 && received[1]! > 0);
    assert.equal(received[0]! + received[1]!, CONTENT.length, 'each byte arrived once');
    assert.match(out, new RegExp(`sha256 ${sha256(CONTENT)}`));
    assert.ok(beginningOf('resumed').equals(CONTENT));
    assert.deepEqual(readdirSync(disks.directoryOf('resumed')).sort(), ['disk.format', 'disk.img']);
  });

  test('resumes a partial upload of an earlier command, and starts over with another image', async () => {
    await disks.createClaim('stopped', { annotations: { [UPLOAD_ANNOTATION]: 'true' } });
    const partial = join(disks.directoryOf('stopped'), 'disk.img.upload');
    const door = (
      disks.scene.node as { disks?: { open(namespace: string, claim: string): Promise<{ close(): Promise<void> }> } }
    ).disks;
    await (await door?.open('default', 'stopped'))?.close();
    const received: number[] = [];
    disks.wrap = counting(received);

    writeFileSync(partial, CONTENT.subarray(0, 2 * MIB));
    const same = await upload('stopped', 'a.raw', '--no-create');
    assert.equal(same.code, 0, same.err);
    assert.match(same.out, /^Using existing PVC default\/stopped\n/);
    assert.deepEqual(received, [MIB]);
    assert.ok(beginningOf('stopped').equals(CONTENT));

    writeFileSync(partial, randomBytes(MIB));
    const other = await upload('stopped', 'a.raw', '--no-create', '--replace');
    disks.wrap = (one) => one;
    assert.equal(other.code, 0, other.err);
    assert.deepEqual(received, [MIB, CONTENT.length], 'the partial upload is not the beginning of the image');
    assert.ok(beginningOf('stopped').equals(CONTENT));
  });

  test('is refused if the bytes arrive damaged, and leaves nothing', async () => {
    await disks.createVolumeFor('mixed');
    disks.wrap = (one) => ({
      ...one,
      async readProgress(header) {
        const { offset, hash } = await one.readProgress(header);
        // As with a damaged disk: the bytes do not match the reported checksum.
        const reported = hash.copy();
        hash.update('x');
        return { offset, hash: Object.assign(hash, { copy: () => reported }) };
      },
    });
    const { code, err } = await upload('mixed', 'a.raw', ...make);
    disks.wrap = (one) => one;
    assert.equal(code, 1);
    assert.match(
      err,
      /the received bytes do not match the sha256 of the sender: theirs is \w{64}\nPersistentVolumeClaim default\/mixed was deleted again\.\n$/,
    );
    assert.equal(existsSync(disks.imageOf('mixed')), false);
    assert.deepEqual(readdirSync(disks.directoryOf('mixed')), []);
    await assert.rejects(disks.readClaim('mixed'));
  });

  test('records the firmware that boots the image, and forgets that of replaced content', async () => {
    const disk = aPartitionedDisk(2 * MIB);
    writeFileSync(fileOf('bios.raw'), Buffer.concat([Buffer.from('boot code'), disk.subarray(9)]));
    disk.writeUInt8(0xef, 446 + 4);
    writeFileSync(fileOf('efi.raw'), disk);
    await disks.createVolumeFor('booting');
    const firmware = async () => (await disks.readClaim('booting')).metadata.annotations?.[BOOT_FIRMWARE_ANNOTATION];

    const first = await upload('booting', 'efi.raw', ...make);
    assert.match(first.err, /Note: the image has a boot loader for UEFI only; use "virtctl create vm --efi"\.\n$/);
    assert.equal(await firmware(), 'efi');
    assert.equal((await upload('booting', 'bios.raw', '--no-create')).code, 1);
    assert.equal(await firmware(), 'efi', 'the content is still there');
    assert.match(
      (await upload('booting', 'bios.raw', '--no-create', '--replace')).err,
      /for BIOS only; .* without --efi/,
    );
    assert.equal(await firmware(), 'bios');
    assert.doesNotMatch((await upload('booting', 'a.raw', '--no-create', '--replace')).err, /Note/);
    assert.equal(await firmware(), undefined);
  });

  test('uploads a file without any sign of a disk with --force', async () => {
    await disks.createVolumeFor('forced');
    const { code, err } = await upload('forced', 'noise', ...make, '--force');
    assert.equal(code, 0, err);
    assert.equal(readFileSync(disks.imageOf('forced'))[0], 0xa5);
  });

  const refused: Record<string, { args: [claim: string, file: string, ...more: string[]]; err: RegExp }> = {
    'an image larger than its claim': {
      args: ['none', 'a.raw', '--size=2Mi'],
      err: /its disk needs 3145728 bytes \(3\.0 MiB\), but --size=2Mi has 2097152 bytes \(2\.0 MiB\)\n$/,
    },
    'a qcow2 with a larger virtual size': {
      args: ['none', 'large.qcow2', ...make],
      err: /its disk needs 8388608 bytes/,
    },
    'a backing file': { args: ['none', 'backed.qcow2', ...make], err: /it names a backing file; expected a raw or / },
    'data in another file': { args: ['none', 'split.qcow2', ...make], err: /it keeps its data in another file/ },
    'another format': {
      args: ['none', 'a.vmdk', ...make],
      err: /its format is vmdk; .*"qemu-img convert -O qcow2" first/,
    },
    'a disk without a size': { args: ['none', 'void.qcow2', ...make], err: /void\.qcow2: its disk is empty\n$/ },
    'another compression inside gzip': {
      args: ['none', 'a.zst.gz', ...make],
      err: /its format is zstd; expected raw or qcow2: decompress it first\n$/,
    },
    'a truncated file': {
      args: ['none', 'cut.gz', ...make],
      err: /Cannot read .*cut\.gz: unexpected end of file/,
    },
    'a truncated qcow2': {
      args: ['none', 'cut.qcow2', ...make],
      err: /Cannot upload .*cut\.qcow2: it is incomplete: its data for offset \d+ of the disk ends at byte \d+, and the file has 1048576 bytes; download or copy it again\n$/,
    },
    'a truncated qcow2 in gzip': {
      args: ['none', 'cut.qcow2.gz', ...make],
      err: /it is incomplete: its data for offset \d+/,
    },
    'a disk that ends before its last partition': {
      args: ['none', 'cut.raw', ...make],
      err: /its disk has 2097152 bytes \(2\.0 MiB\), but its partition table needs 67108864 bytes \(64\.0 MiB\); download or copy it again, or use --force/,
    },
    'a list of checksums': {
      args: ['none', 'SHA256SUMS', ...make],
      err: /SHA256SUMS: it is a list of checksums or a signature, not a disk image; upload the image that it belongs to, or use --force to upload it anyway\n$/,
    },
    'a web page': {
      args: ['none', 'page.html', ...make],
      err: /it is a web page, not a disk image; check the address/,
    },
    'compressed text': {
      args: ['none', 'note.txt.gz', ...make],
      err: /it is text that begins with "a note about disks", not a disk image/,
    },
    'a tar archive': { args: ['none', 'disk.tar', ...make], err: /it is a tar archive, not a disk image; unpack it/ },
    'a file without any sign of a disk': {
      args: ['none', 'noise', ...make],
      err: /noise: it has no partition table, boot sector, file system or ISO 9660 signature; check that it is a disk/,
    },
    'an empty file': { args: ['none', 'empty.raw', ...make], err: /it is empty/ },
    'no file': { args: ['none', 'nothing', ...make], err: /Cannot read .*nothing: ENOENT/ },
    'a claim without a size': {
      args: ['none', 'a.raw'],
      err: /the claim none does not exist; specify its size with --size/,
    },
    'a missing claim with --no-create': {
      args: ['none', 'a.raw', '--no-create'],
      err: /persistentvolumeclaims "none" not found/,
    },
    'a storage class that does not exist': {
      args: ['none', 'a.raw', '--size=4Mi', '--storage-class=nosuch'],
      err: /storage class "nosuch" does not exist; choose one of .*manual/,
    },
    'an archive': { args: ['none', 'a.raw', '--archive-path=x'], err: /--archive-path is not supported/ },
    'an invalid size': { args: ['none', 'a.raw', '--size=big'], err: /invalid size "big"/ },
    'an invalid volume mode': {
      args: ['none', 'a.raw', '--size=4Mi', '--volume-mode=tape'],
      err: /Invalid volume mode "tape"/,
    },
  };
  for (const [title, { args, err: want }] of Object.entries(refused)) {
    test(`refuses ${title}, and creates nothing`, async () => {
      const { code, err } = await upload(...args);
      assert.equal(code, err.includes('\nUsage: ') ? 2 : 1);
      assert.match(err, want);
      await assert.rejects(disks.readClaim('none'));
    });
  }

  test('overwrites existing content only with --replace', async () => {
    await disks.createVolumeFor('kept');
    assert.equal((await upload('kept', 'a.raw', ...make)).code, 0);
    const again = await upload('kept', 'a.qcow2', '--no-create');
    assert.equal(again.code, 1);
    assert.match(
      again.err,
      /PersistentVolume "pv-kept" has content already, which would be lost; use --replace to overwrite it/,
    );
    assert.equal(await waitsForUpload('kept'), false, 'its VM can start');
    assert.equal((await upload('kept', 'a.qcow2', '--no-create', '--replace')).code, 0);
  });

  test('does not change a claim that is in use, protected, or holds state', async () => {
    await disks.createClaim('used');
    await disks.scene.createVmi('user', {
      phase: 'Running',
      spec: { domain: {}, volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'used' } }] },
    });
    const used = await upload('used', 'a.raw', '--no-create');
    assert.match(used.err, /it is in use by VirtualMachineInstance "user"/);
    assert.equal(await waitsForUpload('used'), false);

    await disks.createClaim('busy');
    disks.use = 'PersistentVolume "pv-busy" is in use by pod "p"';
    const busy = await upload('busy', 'a.raw', '--no-create');
    disks.use = undefined;
    assert.match(busy.err, /is in use by pod "p"/);
    assert.equal(await waitsForUpload('busy'), false);

    await disks.createClaim('guarded', { annotations: { [PROTECTED_VMS_ANNOTATION]: 'db' } });
    assert.match(
      (await upload('guarded', 'a.raw', '--no-create')).err,
      /used by VMs that are protected from deletion: db/,
    );
    await disks.createClaim('tpm', { labels: { [STATE_LABEL]: 'db' } });
    assert.match(
      (await upload('tpm', 'a.raw', '--no-create')).err,
      /it contains the persistent state of a VM and is not a disk/,
    );
    for (const claim of ['guarded', 'tpm']) assert.equal(await waitsForUpload(claim), false);
  });

  test('names the node and its free space before it sends an image without room', async () => {
    const received: number[] = [];
    disks.wrap = counting(received);
    await disks.createVolumeFor('full');
    disks.freeBytes = () => 130 * MIB;
    const { code, err } = await upload('full', 'a.raw', ...make);
    await assert.rejects(disks.readClaim('full'));
    disks.freeBytes = () => 131 * MIB;
    await disks.createVolumeFor('freed');
    assert.equal((await upload('freed', 'a.raw', ...make)).code, 0);
    [disks.wrap, disks.freeBytes] = [(one) => one, () => 100 * 1024 * MIB];
    assert.equal(code, 1);
    assert.match(err, /node "node-1" has 130\.0 MiB of free space there and needs 131\.0 MiB; free space on the node/);
    assert.doesNotMatch(err, /retrying/);
    assert.deepEqual(received, [CONTENT.length], 'only the second upload sent bytes');
  });

  test('counts the data inside a compressed qcow2 before it sends the image', async () => {
    const received: number[] = [];
    const [raw, packed] = [fileOf('text.raw'), fileOf('packed.qcow2')];
    writeFileSync(raw, Buffer.concat([aDisk(512), Buffer.alloc(3 * MIB - 512, 'text')]));
    execFileSync('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, packed]);
    writeFileSync(fileOf('packed.qcow2.gz'), gzipSync(readFileSync(packed)));
    await disks.createVolumeFor('packed');
    await disks.createVolumeFor('twice');
    disks.freeBytes = () => 130 * MIB;
    disks.wrap = counting(received);
    const before = await upload('packed', 'packed.qcow2', ...make);
    assert.deepEqual(received, []);
    const after = await upload('twice', 'packed.qcow2.gz', ...make);
    [disks.wrap, disks.freeBytes] = [(one) => one, () => 100 * 1024 * MIB];
    assert.match(before.err, /node "node-1" has 130\.0 MiB of free space there and needs 131\.\d MiB; free space/);
    assert.match(after.err, /node "node-1" has 130\.0 MiB of free space there and needs 131\.0 MiB; free space/);
    assert.equal(received.length, 1, 'the tables of a file in gzip are read by the node');
    assert.deepEqual(readdirSync(disks.directoryOf('twice')), []);
  });

  test('refuses a claim whose storage class does not exist, and names the class', async () => {
    await disks.create(PERSISTENT_VOLUME_CLAIMS, {
      metadata: { namespace: 'default', name: 'lost' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'nosuch',
        resources: { requests: { storage: '4Mi' } },
      },
    });
    const { code, err } = await upload('lost', 'a.raw', '--no-create');
    assert.equal(code, 1);
    assert.match(err, /"lost": its storage class "nosuch" does not exist; choose one of .*manual/);
    assert.doesNotMatch(err, /retrying/);
  });

  test('refuses a claim that no node can ever hold, names the class and the limit, and leaves no claim', async () => {
    const body = { metadata: { annotations: formatStorageSize({ nodeBytes: 64 * MIB, sharedBytes: 64 * MIB }) } };
    await disks.scene.admin.patch(NODES, { name: NODE }, { type: 'merge', body });
    await disks.create(STORAGE_CLASSES, { metadata: { name: 'small' }, provisioner: LOCAL_PROVISIONER });
    const cases: [flags: string[], want: RegExp][] = [
      [['--size=1Gi'], /StorageClass "small" .*: it requests 1Gi, but no node can hold more than 64Mi; request less/],
      [['--size=4Mi', '--access-mode=ReadWriteMany'], /StorageClass "small" .* cannot provide ReadWriteMany; use/],
    ];
    for (const [flags, want] of cases) {
      const { code, err } = await upload('huge', 'a.raw', '--storage-class=small', ...flags);
      assert.equal(code, 1);
      assert.match(err, want);
      assert.match(err, /PersistentVolumeClaim default\/huge was deleted again\.\n$/);
      assert.doesNotMatch(err, /retrying/);
      await assert.rejects(disks.readClaim('huge'), /"huge" not found/);
    }
  });

  test('does not send an image again if the node runs out of room midway', async () => {
    const received: number[] = [];
    disks.wrap = counting(received);
    writeFileSync(fileOf('filling.raw'), aDisk(100 * MIB));
    await disks.createVolumeFor('filling', '128Mi');
    let checks = 0;
    disks.freeBytes = () => (checks++ < 1 ? 100 * 1024 * MIB : 1 * MIB);
    const { code, err } = await upload('filling', 'filling.raw', '--size=128Mi', '--storage-class=manual');
    [disks.wrap, disks.freeBytes] = [(one) => one, () => 100 * 1024 * MIB];
    assert.equal(code, 1);
    assert.match(err, /node "node-1" has 1\.0 MiB of free space/);
    assert.doesNotMatch(err, /retrying/);
    assert.equal(received.length, 1);
    assert.deepEqual(readdirSync(disks.directoryOf('filling')), []);
  });

  test('accepts the old flags, and reports what is not supported', async () => {
    await disks.createVolumeFor('old');
    const old = ['--pvc-name=old', '--pvc-size=4Mi', '--storage-class=manual', `--image-path=${fileOf('a.raw')}`];
    const { code, err } = await disks.scene.virtctl(
      'image-upload',
      ...old,
      '--uploadproxy-url=https://x',
      '--insecure',
    );
    assert.equal(code, 0, err);
    assert.match(err, /^Warning: --uploadproxy-url is ignored: CDI is not used\.\n/);
    await disks.createVolumeFor('dv');
    const dv = await disks.scene.virtctl('image-upload', 'dv', 'dv', ...make, `--image-path=${fileOf('a.raw')}`);
    assert.match(
      dv.err,
      /^Note: DataVolumes are not supported; uploading to a PersistentVolumeClaim with this name\.\n/,
    );
    assert.equal(dv.code, 0);
    assert.match(
      (await disks.scene.virtctl('image-upload', 'cd', 'x', `--image-path=${fileOf('a.raw')}`)).err,
      /invalid resource type cd/,
    );
  });
});

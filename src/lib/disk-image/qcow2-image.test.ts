import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { convertedBytes, Qcow2Image } from '#lib/disk-image/qcow2-image.ts';
import { asSource } from '#lib/disk-image/testing/partitioned-disks.ts';
import { aTinyQcow2 } from '#lib/disk-image/testing/tiny-qcow2.ts';

const MIB = 1024 * 1024;
const CONTENT = Buffer.concat([randomBytes(MIB), Buffer.alloc(3 * MIB), Buffer.alloc(MIB, 'text'), randomBytes(1000)]);
/** The size of a disk in a qcow2 image is a multiple of this. */
const SECTOR = 512;
const DISK = Buffer.concat([CONTENT], Math.ceil(CONTENT.length / SECTOR) * SECTOR);

let dir = '';
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'qcow2-image-'));
  writeFileSync(join(dir, 'disk.raw'), DISK);
});
after(() => rmSync(dir, { recursive: true }));

/** Converts the disk with QEMU. */
function anImage(...options: string[]): Buffer {
  const path = join(dir, 'disk.qcow2');
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...options, join(dir, 'disk.raw'), path]);
  return readFileSync(path);
}

const variants: Record<string, string[]> = {
  'an image': [],
  'a compressed image': ['-c'],
  'an image of version 2': ['-o', 'compat=0.10'],
  'an image with small clusters': ['-o', 'cluster_size=4096'],
  'a compressed image with large clusters': ['-c', '-o', 'cluster_size=2M'],
  'an image with allocated tables': ['-o', 'preallocation=metadata'],
};
for (const [title, options] of Object.entries(variants)) {
  test(`${title} is complete, and reads as the disk`, async () => {
    const image = await Qcow2Image.open(asSource(anImage(...options)));
    assert.ok(image);
    const needed = convertedBytes(await image.check(), DISK.length);
    assert.ok(needed >= 2 * MIB && needed <= DISK.length + 4 * MIB, `${needed}`);
    assert.equal(image.size, DISK.length);
    assert.ok((await image.read(DISK.length, 0))?.equals(DISK));
    assert.ok((await image.read(5000, MIB - 100))?.equals(DISK.subarray(MIB - 100, MIB + 4900)));
    assert.equal((await image.read(10, DISK.length - 3))?.length, 3);
  });

  test(`${title} is refused if its end is missing`, async () => {
    const file = anImage(...options);
    // More than the unused rest of the last cluster.
    for (const bytes of [70_000, MIB]) {
      const source = asSource(file.subarray(0, Math.max(200, file.length - bytes)));
      await assert.rejects(
        async () => await (await Qcow2Image.open(source))?.check(),
        /^DamagedImageError: it is incomplete: .* ends at byte \d+, and the file has \d+ bytes; download or copy it/,
      );
    }
  });
}

test('an image with subclusters is complete, and its content is not known', async () => {
  const image = await Qcow2Image.open(asSource(anImage('-o', 'extended_l2=on')));
  await image?.check();
  assert.equal(await image?.read(512, 0), undefined);
});

const damages: Record<string, { damage(file: Buffer): void; message: RegExp }> = {
  'an invalid cluster size': { damage: (file) => file.writeUInt32BE(40, 20), message: /invalid cluster size: 2\^40/ },
  'an L1 table that is too small': {
    damage: (file) => file.writeUInt32BE(0, 36),
    message: /an L1 table of 0 entries; a disk of \d+ bytes needs 1/,
  },
  'an L1 table beyond the end': {
    damage: (file) => file.writeBigUInt64BE(1n << 40n, 40),
    message: /its L1 table ends at byte/,
  },
  'an L1 entry that is not aligned': {
    damage: (file) => file.writeBigUInt64BE(512n, Number(file.readBigUInt64BE(40))),
    message: /its L1 table has an invalid entry 0/,
  },
  'the mark of a corrupt image': {
    damage: (file) => file.writeBigUInt64BE(2n, 72),
    message: /it is marked as corrupt; repair it with "qemu-img check -r all"$/,
  },
  'a feature that is not known': {
    damage: (file) => file.writeBigUInt64BE(1n << 20n, 72),
    message: /it uses a feature of qcow2 that is not known; convert it/,
  },
};
for (const [title, { damage, message }] of Object.entries(damages)) {
  test(`refuses ${title}`, async () => {
    const file = anImage();
    damage(file);
    await assert.rejects(async () => await (await Qcow2Image.open(asSource(file)))?.check(), message);
  });
}

test('reads only the tables of the disk, however many entries the L1 table has', async () => {
  const file = anImage();
  const l1At = Number(file.readBigUInt64BE(40));
  // All entries name the same L2 table, as in an image that is made to keep its reader busy.
  const l1 = Buffer.alloc(1000 * 8);
  for (let at = 0; at < l1.length; at += 8) file.copy(l1, at, l1At, l1At + 8);
  const crafted = Buffer.concat([file, l1]);
  crafted.writeUInt32BE(1000, 36);
  crafted.writeBigUInt64BE(BigInt(file.length), 40);
  const source = asSource(crafted);
  let reads = 0;
  const counted = { ...source, read: (length: number, at: number) => (reads++, source.read(length, at)) };
  const data = await (await Qcow2Image.open(counted))?.check();
  assert.deepEqual(data, await (await Qcow2Image.open(asSource(file)))?.check());
  // The header, the L1 table, the refcount table, and one L2 table.
  assert.equal(reads, 4);
});

test('random bytes in the tables are refused or read, without another error', async () => {
  const whole = anImage('-c', '-o', 'cluster_size=4096');
  for (let i = 0; i < 200; i++) {
    const file = Buffer.from(whole);
    randomBytes(8).copy(file, 20 + Math.floor(Math.random() * 8192));
    try {
      const image = await Qcow2Image.open(asSource(file));
      await image?.check();
      await image?.read(64 * 1024, 0);
    } catch (error) {
      assert.equal((error as Error).name, 'DamagedImageError', String(error));
    }
  }
});

const TINY = { clusterBits: 9, isCompressed: false, features: 0n };

test('refuses an L1 table whose entries share a table, without reading that again and again', async () => {
  const image = await Qcow2Image.open(asSource(aTinyQcow2({ ...TINY, l1Entries: 10_000, shared: 10_000 })));
  await assert.rejects(
    async () => await image?.check(),
    /^DamagedImageError: its L1 table has more entries than the file has clusters; download or copy it again$/,
  );
});

test('lets others work while it checks a large table', async () => {
  const image = await Qcow2Image.open(asSource(aTinyQcow2({ ...TINY, l1Entries: 1_000_000, shared: 1 })));
  let turns = 0;
  const count = () => void (turns++, (timer = setImmediate(count)));
  let timer = setImmediate(count);
  assert.deepEqual(await image?.check(), { plainBytes: 512, compressedBytes: 0 });
  clearImmediate(timer);
  assert.ok(turns >= 30, `there were ${turns} turns`);
});

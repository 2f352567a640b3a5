import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLUSTER, type ImageFile } from '#formats/qcow2/layout.ts';
import { readQcow2 } from '#formats/qcow2/read-qcow2.ts';
import { writeQcow2 } from '#formats/qcow2/write-qcow2.ts';

const MIB = 1024 ** 2;

/** A file in memory. Its end reads as zeros, like that of a cluster in a file. */
function aFile() {
  let bytes = Buffer.alloc(0);
  const grow = (size: number) => {
    if (size > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(size - bytes.length)]);
  };
  const file: ImageFile = {
    async write(piece, at) {
      grow(at + piece.length);
      bytes.set(piece, at);
    },
    async read(length, at) {
      assert.ok(at + length <= bytes.length, 'the file has fewer bytes');
      return bytes.subarray(at, at + length);
    },
  };
  return { file, content: () => bytes };
}

async function* inPieces(content: Buffer, size = 100_000) {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

const fill = (clusters: readonly Buffer[]) => Buffer.concat(clusters);
const text = (length = CLUSTER) => Buffer.alloc(length, 'a line that compresses well\n');
const hole = (clusters: number) => Buffer.alloc(clusters * CLUSTER);

const disks: Record<string, Buffer> = {
  'an empty disk': hole(3),
  'a disk that compresses': fill([text(), hole(2), text(), text()]),
  'a disk that does not compress': randomBytes(5 * CLUSTER),
  'a mixture, in which compressed clusters continue in the next one': fill(
    Array.from({ length: 40 }, (_, i) =>
      i % 3 === 0
        ? randomBytes(CLUSTER)
        : Buffer.concat([randomBytes(40_000 + i), Buffer.alloc(CLUSTER - 40_000 - i, i)]),
    ),
  ),
  'a disk that ends within a cluster': fill([text(), text(3 * 512)]),
  'a disk with several L2 tables': fill([text(), Buffer.alloc(600 * MIB), randomBytes(CLUSTER), text(512)]),
};

function readPart(path: string, length: number, at: number): Buffer {
  const [file, part] = [openSync(path, 'r'), Buffer.alloc(length)];
  readSync(file, part, 0, length, at);
  closeSync(file);
  return part;
}

const hasQemuImg = (() => {
  try {
    return execFileSync('qemu-img', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

for (const [title, disk] of Object.entries(disks)) {
  test(`writes ${title} as qcow2, and reads it back`, async () => {
    const { file, content } = aFile();
    const { fileBytes, ...written } = await writeQcow2(inPieces(disk), file);
    assert.equal(content().length, fileBytes);
    assert.equal(written.virtualBytes, disk.length);
    assert.deepEqual(await readQcow2(file), written);
  });

  test(`QEMU reads ${title}`, { skip: hasQemuImg ? false : 'qemu-img is not installed' }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'qcow2-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const { file, content } = aFile();
    await writeQcow2(inPieces(disk), file);
    const [image, raw] = [join(dir, 'disk.qcow2'), join(dir, 'disk.img')];
    writeFileSync(image, content());
    const checked = String(execFileSync('qemu-img', ['check', '-f', 'qcow2', image]));
    assert.match(checked, /No errors were found/);
    assert.doesNotMatch(checked, /leaked/);
    execFileSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', image, raw]);
    assert.equal(statSync(raw).size, disk.length);
    // Only the ends of a large disk have data.
    const length = Math.min(disk.length, 40 * CLUSTER);
    for (const at of [0, disk.length - length]) {
      assert.ok(readPart(raw, length, at).equals(disk.subarray(at, at + length)));
    }
  });
}

test('data shrinks, and holes take no space', async () => {
  const { file } = aFile();
  const { fileBytes } = await writeQcow2(inPieces(fill([...Array.from({ length: 64 }, () => text()), hole(64)])), file);
  assert.ok(fileBytes <= 6 * CLUSTER, `the file has ${fileBytes} bytes`);
});

test('notices damage anywhere in the data', async () => {
  const { file } = aFile();
  const { fileBytes: _, ...written } = await writeQcow2(inPieces(fill([text(), randomBytes(CLUSTER)])), file);
  for (const at of [CLUSTER + 2, 2 * CLUSTER + 9]) {
    const [before] = await file.read(1, at);
    await file.write(Buffer.from([(before ?? 0) ^ 0x55]), at);
    const read = await readQcow2(file).catch((error: unknown) => error);
    assert.notDeepEqual(read, written);
    await file.write(Buffer.from([before ?? 0]), at);
  }
  assert.deepEqual(await readQcow2(file), written);
  await file.write(Buffer.from('PK'), 0);
  await assert.rejects(readQcow2(file), /it is not an image that Selfsame wrote/);
});

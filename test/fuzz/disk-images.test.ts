/** Disk images that somebody uploads: qcow2 headers and tables, partition tables, boot catalogs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readBootSupport } from '#lib/disk-image/boot-support.ts';
import type { ByteSource } from '#lib/disk-image/byte-source.ts';
import { findMissingEnd } from '#lib/disk-image/declared-size.ts';
import { hasDiskSign } from '#lib/disk-image/disk-signs.ts';
import { DamagedImageError, Qcow2Image } from '#lib/disk-image/qcow2-image.ts';
import { aDisk, asSource } from '#lib/disk-image/testing/partitioned-disks.ts';
import { aTinyQcow2 } from '#lib/disk-image/testing/tiny-qcow2.ts';
import { checkInputs, expectedError } from '#test/fuzz/check-inputs.ts';
import { byteMutations, headMutations, type Mutation } from '#test/fuzz/mutations.ts';

const HEADER_BYTES = 112;
const shape = fc.record({
  clusterBits: fc.integer({ min: 9, max: 16 }),
  l1Entries: fc.integer({ min: 1, max: 200 }),
  shared: fc.nat(1),
  isCompressed: fc.boolean(),
  features: fc.constantFrom<bigint>(0n, 1n, 8n, 16n),
});
const unchanged: Mutation = (bytes) => bytes;
const LARGEST = { clusterBits: 9, l1Entries: 4 * 1024 * 1024, isCompressed: false, features: 0n };

/** Counts what is read: the check of an image must not read more than a few times its size. */
function counted(source: ByteSource): { readonly source: ByteSource; readonly bytes: () => number } {
  let bytes = 0;
  const read = async (length: number, at: number) => {
    const found = await source.read(length, at);
    bytes += found?.length ?? 0;
    return found;
  };
  return { source: { size: source.size, read }, bytes: () => bytes };
}

test('no qcow2 image crashes the check, reads the file many times or blocks the event loop', (t) =>
  checkInputs(
    t,
    {
      runs: 500,
      values: fc.tuple(shape, fc.oneof(headMutations(HEADER_BYTES), byteMutations)),
      always: [
        [{ ...LARGEST, shared: 0 }, unchanged],
        [{ ...LARGEST, shared: 100_000 }, unchanged],
        [{ clusterBits: 21, l1Entries: 4000, shared: 4000, isCompressed: false, features: 0n }, unchanged],
        [{ clusterBits: 21, l1Entries: 1, shared: 1, isCompressed: false, features: 0n }, unchanged],
      ],
    },
    async ([parts, mutate]) => {
      const file = mutate(aTinyQcow2(parts));
      const { source, bytes } = counted(asSource(file));
      await expectedError([DamagedImageError], async () => {
        const image = await Qcow2Image.open(source);
        await image?.check();
        await image?.read(8192, 0);
        await image?.read(512, Math.max(0, (image?.size ?? 0) - 512));
      });
      assert.ok(bytes() <= 4 * file.length + 16 * 1024 * 1024, `${bytes()} bytes were read of ${file.length}`);
    },
  ));

const disks = fc.constantFrom(
  aDisk({ bootCode: true, mbr: [0x83, 0xef, 0x05], fat: 0 }),
  aDisk({ gpt: ['esp', 'linux', 'linux'], fat: 1 }),
  aDisk({ catalog: [0, 0xef] }),
);
const TABLES_BYTES = 64 * 1024;

test('no partition table or boot catalog crashes its reader or blocks the event loop', (t) =>
  checkInputs(
    t,
    {
      runs: 500,
      values: fc.tuple(disks, fc.oneof(headMutations(TABLES_BYTES), headMutations(2048)), byteMutations, fc.boolean()),
    },
    async ([disk, mutateHead, mutate, isCut]) => {
      const head = mutateHead(disk.subarray(0, TABLES_BYTES));
      const source = asSource(isCut ? mutate(head) : Buffer.concat([head, disk.subarray(TABLES_BYTES)]));
      await readBootSupport(source);
      await findMissingEnd(source);
      hasDiskSign(head);
    },
  ));

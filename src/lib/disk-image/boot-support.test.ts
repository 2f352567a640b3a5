import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBootSupport } from '#lib/disk-image/boot-support.ts';
import { beginningOf, type ByteSource } from '#lib/disk-image/byte-source.ts';
import { aDisk, asSource } from '#lib/disk-image/testing/partitioned-disks.ts';

const [BIOS, EFI, BOTH, NONE] = [
  { bios: true, efi: false },
  { bios: false, efi: true },
  { bios: true, efi: true },
  { bios: false, efi: false },
];

const cases: Record<string, [disk: Buffer, want: object | undefined]> = {
  'an MBR with boot code': [aDisk({ bootCode: true, mbr: [0x83] }), BIOS],
  'an MBR without boot code': [aDisk({ mbr: [0x83] }), NONE],
  'an MBR with an EFI system partition': [aDisk({ mbr: [0xef, 0x83] }), EFI],
  'an MBR with FAT in a partition of another type': [aDisk({ mbr: [0x83, 0x0c], fat: 1 }), EFI],
  'an MBR with an extended partition, which is not read': [aDisk({ bootCode: true, mbr: [0x83, 0x05] }), undefined],
  'a GPT with an EFI system partition': [aDisk({ gpt: ['linux', 'esp'] }), EFI],
  'a GPT with an EFI system partition and boot code': [aDisk({ bootCode: true, gpt: ['linux', 'esp'] }), BOTH],
  'a GPT with boot code only': [aDisk({ bootCode: true, gpt: ['linux'] }), BIOS],
  'a GPT with FAT in another partition': [aDisk({ bootCode: true, gpt: ['linux', 'linux'], fat: 1 }), BOTH],
  'a FAT file system without partitions': [aDisk({ fat: -1 }), EFI],
  'an ISO with a boot catalog for both': [aDisk({ catalog: [0, 0xef] }), BOTH],
  'an ISO for UEFI only': [aDisk({ catalog: [0xef] }), EFI],
  'an ISO for BIOS only': [aDisk({ catalog: [0] }), BIOS],
  'an ISO for BIOS only with an EFI system partition': [aDisk({ catalog: [0], mbr: [0xef] }), BOTH],
  'a boot sector without partitions': [aDisk({ bootCode: true }), undefined],
  'a blank disk': [aDisk({}), undefined],
  'a file that is shorter than a sector': [Buffer.alloc(100), undefined],
};
for (const [title, [disk, want]] of Object.entries(cases)) {
  test(title, async () => assert.deepEqual(await readBootSupport(asSource(disk)), want));
}

test('returns nothing if a partition is not known', async () => {
  const disk = aDisk({ bootCode: true, mbr: [0x83] });
  assert.equal(await readBootSupport(beginningOf(disk.subarray(0, 4096), disk.length)), undefined);
});

/** Returns a source that refuses positions that a file of the system cannot have, as reads of files do. */
function asFile(disk: Buffer): ByteSource {
  const source = asSource(disk);
  return {
    ...source,
    read: async (length, at) => {
      assert.ok(Number.isSafeInteger(at), `a read at ${at}`);
      return await source.read(length, at);
    },
  };
}

const beyond: Record<string, number> = {
  'the entries of the GPT': 512 + 72,
  'a partition of the GPT': 2 * 512 + 32,
};
for (const [title, field] of Object.entries(beyond)) {
  test(`returns nothing if ${title} would be beyond the end of any file`, async () => {
    const disk = aDisk({ gpt: ['linux'] });
    disk.writeBigUInt64LE(1n << 62n, field);
    assert.equal(await readBootSupport(asFile(disk)), undefined);
  });
}

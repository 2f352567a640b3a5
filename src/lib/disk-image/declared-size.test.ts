import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findMissingEnd } from '#lib/disk-image/declared-size.ts';
import { aDisk, asSource } from '#lib/disk-image/testing/partitioned-disks.ts';

const MIB = 1024 * 1024;
const cut = (disk: Buffer, bytes: number) => disk.subarray(0, bytes);

const cases: Record<string, [disk: Buffer, want: string | undefined]> = {
  'a whole GPT': [aDisk({ gpt: ['esp'] }), undefined],
  'a GPT without its last sector': [cut(aDisk({ gpt: ['esp'] }), 8 * MIB - 512), 'partition table 8388608'],
  'a whole MBR': [aDisk({ mbr: [0x83] }), undefined],
  'an MBR whose last partition ends within the next cylinder': [cut(aDisk({ mbr: [0x83] }), 7 * MIB), undefined],
  'an MBR whose last partition is cut off': [
    cut(aDisk({ bytes: 64 * MIB, mbr: [0x83] }), 4 * MIB),
    'partition table 67108864',
  ],
  'a whole ISO': [aDisk({ catalog: [0] }), undefined],
  'an ISO that is cut off': [cut(aDisk({ catalog: [0] }), 4 * MIB), 'volume descriptor 8388608'],
  'a blank disk': [aDisk({}), undefined],
};
for (const [title, [disk, want]] of Object.entries(cases)) {
  test(title, async () => {
    const found = await findMissingEnd(asSource(disk));
    assert.equal(found && `${found.source} ${found.bytes}`, want);
  });
}

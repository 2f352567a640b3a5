import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasDiskSign, SIGNS_BYTES } from '#lib/disk-image/disk-signs.ts';

const at = (offset: number, magic: string) => {
  const beginning = Buffer.alloc(SIGNS_BYTES, 0x11);
  beginning.write(magic, offset, 'latin1');
  return beginning;
};

const cases: Record<string, [beginning: Buffer, want: boolean]> = {
  'a boot sector': [at(510, '\x55\xaa'), true],
  'a GPT with large sectors': [at(4096, 'EFI PART'), true],
  'an ISO 9660 image': [at(32_769, 'CD001'), true],
  ext4: [at(1080, '\x53\xef'), true],
  XFS: [at(0, 'XFSB'), true],
  Btrfs: [at(65_600, '_BHRfS_M'), true],
  'a disk that is encrypted with LUKS': [at(0, 'LUKS\xba\xbe'), true],
  'a physical volume of LVM': [at(512, 'LABELONE'), true],
  'a blank disk': [Buffer.alloc(4096), true],
  'other bytes': [at(0, 'noise'), false],
  'a signature at another place': [at(511, '\x55\xaa'), false],
  'an empty file': [Buffer.alloc(0), false],
  'a short file': [Buffer.from('abc'), false],
};
for (const [title, [beginning, want]] of Object.entries(cases)) {
  test(title, () => assert.equal(hasDiskSign(beginning), want));
}

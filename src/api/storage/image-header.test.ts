import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUnsupportedFormat, HEADER_BYTES } from '#api/storage/image-header.ts';

const at = (offset: number, magic: string) => {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(magic, offset, 'latin1');
  return header;
};

const cases: Record<string, [header: Buffer, want: string | undefined]> = {
  'a sparse VMDK': [at(0, 'KDMV'), 'vmdk'],
  'the descriptor of a VMDK': [at(0, '# Disk DescriptorFile'), 'vmdk'],
  VHDX: [at(0, 'vhdxfile'), 'vhdx'],
  'a dynamic VHD': [at(0, 'conectix'), 'vhd'],
  VDI: [at(64, '\x7f\x10\xda\xbe'), 'vdi'],
  gzip: [at(0, '\x1f\x8b'), 'gzip'],
  xz: [at(0, '\xfd7zXZ\0'), 'xz'],
  'a boot sector': [at(0, '\xeb\x63\x90'), undefined],
  'a disk that its guest has encrypted with LUKS': [at(0, 'LUKS\xba\xbe'), undefined],
  'a qcow2': [at(0, 'QFI\xfb'), undefined],
  'an empty file': [Buffer.alloc(0), undefined],
};
for (const [title, [header, want]] of Object.entries(cases)) {
  test(title, () => assert.equal(findUnsupportedFormat(header), want));
}

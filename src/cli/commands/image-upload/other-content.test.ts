import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeOtherContent } from '#cli/commands/image-upload/other-content.ts';

const file = (text: string) => Buffer.from(text, 'latin1');
const at = (offset: number, magic: string) => file('x'.repeat(offset) + magic + '\0'.repeat(600));

const cases: Record<string, [beginning: Buffer, want: string | undefined]> = {
  'a zip archive': [at(0, 'PK\x03\x04'), 'a zip archive'],
  'a tar archive': [at(257, 'ustar'), 'a tar archive'],
  'an OVA': [file(`vm.OVF${'\0'.repeat(251)}ustar`), 'an OVA'],
  bzip2: [at(0, 'BZh9'), 'compressed with bzip2'],
  'a web page': [file('\n<!doctype HTML>\n<p>gone'), 'a web page'],
  'the checksums of GNU': [file(`${'a'.repeat(64)} *disk.qcow2\n`), 'a list of checksums or a signature'],
  'the checksums of BSD': [
    file(`# Fedora\nSHA256 (disk.qcow2) = ${'b'.repeat(64)}\n`),
    'a list of checksums or a signature',
  ],
  'a signature': [file('-----BEGIN PGP SIGNATURE-----\n'), 'a list of checksums or a signature'],
  'other text': [file('#cloud-config\nusers: []\n'), 'text that begins with "#cloud-config"'],
  'text whose last character is cut off': [
    Buffer.from('ä'.repeat(300)).subarray(0, 511),
    `text that begins with "${'ä'.repeat(40)}"`,
  ],
  'a boot sector': [at(510, '\x55\xaa'), undefined],
  'bytes that are not text': [file('\xeb\x63\x90'), undefined],
  nothing: [Buffer.alloc(0), undefined],
};
for (const [title, [beginning, want]] of Object.entries(cases)) {
  test(title, () => assert.equal(describeOtherContent(beginning)?.what, want));
}

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HEADER_BYTES } from '#api/storage/image-header.ts';
import { parseImageFormat } from '#node/volumes/local/content/disk-image.ts';

interface Header {
  version?: number;
  backing?: number;
  encrypted?: number;
  features?: bigint;
  length?: number;
}

function qcow2({ version = 3, backing = 0, encrypted = 0, features = 0n, length = HEADER_BYTES }: Header): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('QFI\xfb', 'latin1');
  header.writeUInt32BE(version, 4);
  header.writeBigUInt64BE(BigInt(backing), 8);
  header.writeBigUInt64BE(12_345n * 4096n, 24);
  header.writeUInt32BE(encrypted, 32);
  header.writeBigUInt64BE(features, 72);
  return header.subarray(0, length);
}

const cases: Record<string, { header: Buffer; want: string | RegExp }> = {
  'detects an empty file as raw': { header: Buffer.alloc(0), want: 'raw' },
  'detects unknown content as raw': { header: Buffer.from('KDMV and so on'), want: 'raw' },
  'detects qcow2 of version 2': { header: qcow2({ version: 2, length: 72 }), want: 'qcow2' },
  'detects qcow2 of version 3': { header: qcow2({}), want: 'qcow2' },
  'refuses a backing file': { header: qcow2({ backing: 512 }), want: /names a backing file/ },
  'refuses a backing file in version 2': { header: qcow2({ version: 2, backing: 512 }), want: /names a backing file/ },
  'refuses data in another file': { header: qcow2({ features: 4n }), want: /data in another file/ },
  'accepts other features': { header: qcow2({ features: 1n }), want: 'qcow2' },
  'refuses encrypted images': { header: qcow2({ encrypted: 2 }), want: /encrypted/ },
  'refuses unknown versions': { header: qcow2({ version: 4 }), want: /version is 4/ },
  'refuses a truncated header': { header: qcow2({ length: 71 }), want: /cut off/ },
  'refuses a truncated header of version 3': { header: qcow2({ length: 80 }), want: /cut off/ },
};

describe('image format', () => {
  for (const [sentence, { header, want }] of Object.entries(cases)) {
    it(sentence, () => {
      const format = parseImageFormat(header, '/x/disk.img');
      if (typeof want === 'string') assert.equal(format.is, want);
      else assert.match('message' in format ? format.message : '', want);
    });
  }

  it('returns the virtual size of a qcow2 image', () => {
    assert.deepEqual(parseImageFormat(qcow2({}), ''), { is: 'qcow2', virtualBytes: 12_345 * 4096 });
  });
});

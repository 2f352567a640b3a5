import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { buildIsoImage } from '#node/volumes/local/cloud-init/iso-image.ts';

const SECTOR = 2048;
const userData = '#cloud-config\n';
const files = new Map([
  ['user-data', Buffer.from(userData)],
  ['meta-data', Buffer.from('{"instance-id":"a"}\n')],
  ['network-config', Buffer.alloc(5000, 'n')],
]);

interface Read {
  short: string;
  rockRidge: string | undefined;
  content: Buffer;
}

/** Reads an image as an operating system does: volume, root directory, records, extents. */
function read(image: Buffer, volumeSector: number): Read[] {
  const rootRecord = volumeSector * SECTOR + 156;
  const root = image.readUInt32LE(rootRecord + 2);
  const found: Read[] = [];
  const end = root * SECTOR + image.readUInt32LE(rootRecord + 10);
  for (let at = root * SECTOR; at < end && image[at] !== 0; at += image[at]!) {
    assert.equal(image.readUInt32LE(at + 2), image.readUInt32BE(at + 6), 'both byte orders tell the same sector');
    const nameLength = image[at + 32]!;
    const name = image.subarray(at + 33, at + 33 + nameLength);
    if (nameLength === 1) continue;
    const extent = image.readUInt32LE(at + 2) * SECTOR;
    found.push({
      short: name.toString('latin1'),
      rockRidge: rockRidgeName(image.subarray(at + 33 + nameLength + (nameLength % 2 === 0 ? 1 : 0), at + image[at]!)),
      content: image.subarray(extent, extent + image.readUInt32LE(at + 10)),
    });
  }
  return found;
}

function rockRidgeName(systemUse: Buffer): string | undefined {
  for (let at = 0; at + 4 <= systemUse.length && systemUse[at + 2]! > 0; at += systemUse[at + 2]!) {
    if (systemUse.toString('latin1', at, at + 2) === 'NM') {
      return systemUse.toString('latin1', at + 5, at + systemUse[at + 2]!);
    }
  }
  return undefined;
}

describe('iso image', () => {
  const image = buildIsoImage('cidata', files);

  it('has its label in both volume descriptors', () => {
    assert.equal(image.toString('latin1', 16 * SECTOR, 16 * SECTOR + 7), '\x01CD001\x01');
    assert.equal(image.toString('latin1', 16 * SECTOR + 40, 16 * SECTOR + 72).trimEnd(), 'cidata');
    assert.equal(image.toString('latin1', 17 * SECTOR, 17 * SECTOR + 7), '\x02CD001\x01');
    const joliet = Buffer.from(image.subarray(17 * SECTOR + 40, 17 * SECTOR + 72)).swap16();
    assert.equal(joliet.toString('utf16le').trimEnd(), 'cidata');
    assert.equal(image.toString('latin1', 18 * SECTOR, 18 * SECTOR + 6), '\xffCD001');
  });

  it('has each file under its real name for Linux', () => {
    const found = read(image, 16);
    assert.deepEqual(new Map(found.map(({ rockRidge, content }) => [rockRidge, content])), files);
    assert.deepEqual(
      found.map(({ short }) => short),
      ['META_DA0.;1', 'NETWORK1.;1', 'USER_DA2.;1'],
    );
  });

  it('has each file under its real name for Windows', () => {
    const found = read(image, 17).map(({ short, content }) => {
      const name = Buffer.from(short, 'latin1').swap16().toString('utf16le');
      return [name.replace(';1', ''), content] as const;
    });
    assert.deepEqual(new Map(found), files);
  });

  it('has the size that its header states', () => {
    assert.equal(image.readUInt32LE(16 * SECTOR + 80) * SECTOR, image.length);
    assert.equal(image.length % SECTOR, 0);
  });

  it('is the same for the same files, regardless of their order', () => {
    assert.ok(buildIsoImage('cidata', new Map([...files].reverse())).equals(image));
  });

  it('can contain an empty file', () => {
    const [found] = read(buildIsoImage('cidata', new Map([['user-data', Buffer.alloc(0)]])), 16);
    assert.equal(found?.rockRidge, 'user-data');
    assert.equal(found.content.length, 0);
  });

  it('announces Rock Ridge in the root', () => {
    const root = image.subarray(23 * SECTOR, 24 * SECTOR);
    assert.equal(root.toString('latin1', 34, 36), 'SP');
    assert.ok(root.subarray(0, root[0]).includes('RRIP_1991A'));
  });
});

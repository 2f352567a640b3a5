import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sourceKey, readDiskSource } from '#node/host-api/sent/disk-source.ts';

const DIR = '/nodes/n1/host-images';
const volume = { poolID: 'p', domainID: 'd', imageID: 'i', volumeID: 'v' };

const cases: Record<string, { drive: Record<string, unknown>; want: string }> = {
  'a path below host-images': { drive: { path: `${DIR}/a/b.img` }, want: 'file a/b.img' },
  'a path relative to host-images': { drive: { path: 'a/b.img' }, want: 'file a/b.img' },
  "a path of oVirt's hosts": { drive: { path: '/rhev/data-center/p/x.iso' }, want: 'file p/x.iso' },
  'the four ids of a volume': { drive: volume, want: 'file p/d/images/i/v' },
  'the four ids and the path of the same file': {
    drive: { ...volume, path: '/rhev/data-center/p/d/images/i/v' },
    want: 'file p/d/images/i/v',
  },
  'a GUID': { drive: { GUID: '3600' }, want: 'lun 3600 ' },
  'a UUID': { drive: { UUID: 'abc', GUID: '' }, want: 'lun  abc' },
  nothing: { drive: { path: '' }, want: 'none' },
  'a path outside of host-images': {
    drive: { path: '/etc/shadow' },
    want: `path "/etc/shadow" is not a file below ${DIR}`,
  },
  'an absolute path with ..': {
    drive: { path: `${DIR}/../x` },
    want: `path "${DIR}/../x" is not a file below ${DIR}`,
  },
  'a relative path with ..': { drive: { path: 'a/../../x' }, want: `path "a/../../x" is not a file below ${DIR}` },
  'a directory': { drive: { path: `${DIR}/` }, want: `path "${DIR}/" is not a file below ${DIR}` },
  'a path with a zero byte': { drive: { path: 'a\0b' }, want: String.raw`path "a\u0000b"; expected a string` },
  'a path that is not a string': { drive: { path: { a: 1 } }, want: 'path {"a":1}; expected a string' },
  'only three of the four ids': {
    drive: { ...volume, volumeID: '' },
    want: 'expected all of poolID, domainID, imageID, volumeID, each of them a name without slashes',
  },
  'an id that is ..': {
    drive: { ...volume, imageID: '..' },
    want: 'expected all of poolID, domainID, imageID, volumeID, each of them a name without slashes',
  },
  'two sources': {
    drive: { path: 'a', GUID: '3600' },
    want: 'expected one of path, poolID + domainID + imageID + volumeID, GUID and UUID',
  },
  'a GUID and a UUID': { drive: { UUID: 'a', GUID: 'b' }, want: 'expected either a GUID or a UUID' },
};

for (const [name, { drive, want }] of Object.entries(cases)) {
  test(`reads a drive with ${name}`, () => {
    const source = readDiskSource(drive, DIR);
    const result = source.is === 'invalid' ? source.error : (sourceKey(source) ?? source.is);
    assert.equal(result, want);
  });
}

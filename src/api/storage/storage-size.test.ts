import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STORAGE_BYTES_ANNOTATION } from '#api/names.ts';
import { formatStorageSize, storageSizeOf } from '#api/storage/storage-size.ts';

const sizeIn = (text: string) => storageSizeOf({ metadata: { annotations: { [STORAGE_BYTES_ANNOTATION]: text } } });

test('parses a size that it formatted', () => {
  const size = { nodeBytes: 2 ** 40, sharedBytes: 0 };
  assert.deepEqual(storageSizeOf({ metadata: { annotations: formatStorageSize(size) } }), size);
});

for (const text of ['', '5', '{}', '{"nodeBytes":1}', '{"nodeBytes":"1","sharedBytes":1}']) {
  test(`ignores ${JSON.stringify(text)}`, () => assert.equal(sizeIn(text), undefined));
}

test('ignores a node whose size is not a number of bytes, so that it cannot stop the provisioner', () => {
  for (const bytes of ['1e400', '-1', '0.5']) {
    assert.equal(sizeIn(`{"nodeBytes":${bytes},"sharedBytes":1}`), undefined);
    assert.equal(sizeIn(`{"nodeBytes":1,"sharedBytes":${bytes}}`), undefined);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gatherBundle, KINDS, LIMITS, type BundleSource } from '#doctor/bundle/gather.ts';

function source(more: Partial<BundleSource> = {}): BundleSource {
  return {
    files: async () => [
      { path: 'nodes/node-1/domains/d-1/qemu.log', size: 9 },
      { path: 'nodes/node-1/domains/d-1/domain.json', size: 9 },
      { path: 'pki/ca.key', size: 9 },
      { path: 'store.db', size: 9 },
    ],
    ends: async (path) => `tail of ${path}`,
    api: undefined,
    ...more,
  };
}
const names = async (from: BundleSource) => (await gatherBundle(from, [])).map(({ name }) => name);

test('lists keys, the store and definitions by name only', async () => {
  const files = await gatherBundle(source(), []);
  assert.deepEqual(
    files.map(({ name }) => name),
    ['files.txt', 'guests/node-1/d-1/qemu.log', 'audit.log', 'objects/README'],
  );
  assert.ok(!files.some(({ text }) => /tail of (?!nodes\/node-1\/domains\/d-1\/qemu\.log|audit)/.test(text)));
});

test('includes all listed kinds, but neither Secrets nor ConfigMaps', async () => {
  const asked: string[] = [];
  const get = async (path: string) => ({ asked: asked.push(path) });
  await gatherBundle(source({ api: { get, text: async () => '' } }), []);
  assert.equal(asked.length, Object.keys(KINDS).length);
  assert.ok(!asked.some((path) => /secrets|configmaps|serviceaccounts/.test(path)));
  assert.ok(asked.every((path) => path.endsWith(`?limit=${LIMITS.objects}`)));
});

test('continues if something cannot be read', async () => {
  const fail = async () => {
    throw new Error('away');
  };
  const files = await gatherBundle(source({ ends: fail, api: { get: fail, text: fail } }), []);
  assert.equal(files.find(({ name }) => name === 'objects/pods.json')?.text, 'Cannot read it: away\n');
});

test('limits the size, and lists omitted files', async () => {
  const large = async () => 'x'.repeat(LIMITS.fileBytes * 2);
  const files = await gatherBundle(
    source({ api: { get: async () => 'y'.repeat(LIMITS.fileBytes * 2), text: large } }),
    [],
  );
  const total = files.reduce((sum, { text }) => sum + text.length, 0);
  assert.ok(total <= LIMITS.totalBytes + 1024, String(total));
  assert.match(files.at(-1)?.text ?? '', /metrics\.txt/);
  assert.ok((await names(source())).length > 0);
});

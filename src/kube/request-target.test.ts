import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAmbiguous, splitTarget } from '#kube/request-target.ts';

const ambiguous: Record<string, boolean> = {
  '/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b.c/start': false,
  '/namespaces/a%20b': false,
  '/namespaces/...': false,
  '/namespaces/a/../b': true,
  '/namespaces/a/./b': true,
  '/namespaces/a/..': true,
  '/namespaces/a/%2e%2E/b': true,
  '/namespaces/a/.%2e/b': true,
  '/namespaces/a%2fb': true,
  '/namespaces/a%5Cb': true,
  '/namespaces/a%00': true,
  '/namespaces/a%zz': true,
  '/namespaces/a%': true,
};
for (const [path, want] of Object.entries(ambiguous)) {
  test(`${path} is ${want ? '' : 'not '}ambiguous`, () => assert.equal(isAmbiguous(path), want));
}

test('keeps the path as it was written', () => {
  const { path, query } = splitTarget('/a/../b%2fc?d=%2f&e') ?? assert.fail('it is a target');
  assert.equal(path, '/a/../b%2fc');
  assert.deepEqual([...query], [...new URLSearchParams({ d: '/', e: '' })]);
  assert.equal(splitTarget('https://elsewhere/a'), undefined);
  assert.equal(splitTarget('*'), undefined);
});

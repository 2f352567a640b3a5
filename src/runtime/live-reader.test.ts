import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, notFound } from '#kube/api-error.ts';
import { PODS } from '#kube/core-kinds.ts';
import { createLiveReader } from '#runtime/live-reader.ts';

const signal = new AbortController().signal;
const read = (thrown: ApiError) =>
  createLiveReader({ get: () => Promise.reject(thrown) })(PODS, { namespace: 'ns', name: 'db' }, { signal });

test('returns undefined if the object does not exist', async () => {
  assert.equal(await read(notFound(PODS, 'db')), undefined);
});

test('throws if the kind is not served, which says nothing about its objects', async () => {
  await assert.rejects(read(new ApiError(404, 'NotFound', 'the server could not find the requested resource')));
});

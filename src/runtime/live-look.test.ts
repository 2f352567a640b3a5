import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, notFound } from '#kube/api-error.ts';
import { PODS } from '#kube/core-kinds.ts';
import { liveLook } from '#runtime/live-look.ts';

const signal = new AbortController().signal;
const lookAt = (answer: ApiError) =>
  liveLook({ get: () => Promise.reject(answer) })(PODS, { namespace: 'ns', name: 'db' }, { signal });

test('what does not exist is not there', async () => {
  assert.equal(await lookAt(notFound(PODS, 'db')), undefined);
});

test('a kind that is not served for the moment says nothing of its objects', async () => {
  await assert.rejects(lookAt(new ApiError(404, 'NotFound', 'the server could not find the requested resource')));
});

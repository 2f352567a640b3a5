import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeContinue, encodeContinue } from '#engine/handlers/continue-token.ts';
import { ApiError } from '#kube/api-error.ts';

test('a continue token survives encoding', () => {
  const token = { revision: 7, after: 'ns/name' };
  assert.deepEqual(decodeContinue(encodeContinue(token)), token);
  for (const bad of [
    '',
    '!',
    Buffer.from('{}').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    Buffer.from('{"v":"meta.k8s.io/v1","rv":"x","start":"a"}').toString('base64url'),
  ]) {
    assert.throws(() => decodeContinue(bad), ApiError, bad);
  }
});

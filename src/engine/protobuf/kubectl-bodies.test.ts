import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import { kubectlBodies } from '#engine/protobuf/testing/kubectl-bodies.ts';

for (const [command, { base64, object }] of Object.entries(kubectlBodies)) {
  test(`the body of ${command}`, () => {
    const decoded = decodeProtobuf(Buffer.from(base64, 'base64'));
    assert.deepEqual(decoded, { apiVersion: object['apiVersion'], kind: object['kind'], object });
  });
}

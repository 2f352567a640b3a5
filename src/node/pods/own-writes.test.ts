import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';

const aPod = (resourceVersion: string, uid = 'u'): Stored => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid, resourceVersion, creationTimestamp: '2030-01-01T00:00:00Z' },
});

test('the written object counts until the cache has caught up', () => {
  const own = new OwnWrites();
  own.record(aPod('10'));
  assert.equal(own.newest(aPod('9')).metadata.resourceVersion, '10');
  assert.equal(own.newest(aPod('11')).metadata.resourceVersion, '11');
  // The written object is forgotten by then, so an older cached object counts.
  assert.equal(own.newest(aPod('9')).metadata.resourceVersion, '9');
});

test('another object of the same name is not affected', () => {
  const own = new OwnWrites();
  own.record(aPod('10'));
  assert.equal(own.newest(aPod('9', 'other')).metadata.uid, 'other');
});

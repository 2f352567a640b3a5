import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stored } from '#kube/meta.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';

const at = (resourceVersion: string, uid = 'u'): Stored => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid, resourceVersion, creationTimestamp: '2030-01-01T00:00:00Z' },
});

test('what we wrote counts until the cache has got there', () => {
  const own = new OwnWrites();
  own.wrote(at('10'));
  assert.equal(own.newest(at('9')).metadata.resourceVersion, '10');
  assert.equal(own.newest(at('11')).metadata.resourceVersion, '11');
  // It is forgotten then: a cache that is set back is as new as it can be.
  assert.equal(own.newest(at('9')).metadata.resourceVersion, '9');
});

test('another object of the same name has nothing to do with it', () => {
  const own = new OwnWrites();
  own.wrote(at('10'));
  assert.equal(own.newest(at('9', 'other')).metadata.uid, 'other');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMounts } from '#lib/mounts.ts';

test('parses mounts with their device, and decodes spaces in paths', () => {
  const text = [
    '25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw',
    '91 25 7:3 / /data/my\\040node/state-mounts/a\\134b rw,nosuid - ext4 /dev/loop3 rw',
    '',
  ].join('\n');
  assert.deepEqual(parseMounts(text), [
    { device: '254:1', target: '/' },
    { device: '7:3', target: '/data/my node/state-mounts/a\\b' },
  ]);
});

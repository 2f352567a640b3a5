import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shareOf } from '#engine/request/user-share.ts';

test('the service accounts of a namespace share one name; other users have their own', () => {
  const names = ['system:serviceaccount:a:one', 'system:serviceaccount:a:two', 'system:serviceaccount:b:one', 'anna'];
  assert.deepEqual(
    names.map((name) => shareOf({ name, groups: [] })),
    ['system:serviceaccounts:a', 'system:serviceaccounts:a', 'system:serviceaccounts:b', 'anna'],
  );
});

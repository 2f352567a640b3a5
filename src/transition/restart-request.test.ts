import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm, aVmi } from '#api/machine-types/transition.fixture.ts';
import { restartRequest } from '#transition/restart-request.ts';

const AS_SEEN = [
  { op: 'test', path: '/metadata/uid', value: 'vm-uid' },
  { op: 'test', path: '/metadata/resourceVersion', value: '1' },
];
const REQUESTS = '/status/stateChangeRequests';

test('a restart names the instance that it means, and the VM as it was seen', () => {
  const { operations, subresource } = restartRequest('restart', aVm({ status: {} }), aVmi());
  assert.equal(subresource, 'status');
  assert.deepEqual(operations, [
    ...AS_SEEN,
    { op: 'test', path: REQUESTS, value: null },
    { op: 'add', path: REQUESTS, value: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
  ]);
});

test('one that runs once is told not to run', () => {
  const { operations, subresource } = restartRequest('stop', aVm({ runStrategy: 'Once' }), aVmi());
  assert.equal(subresource, undefined);
  assert.deepEqual(operations, [
    ...AS_SEEN,
    { op: 'test', path: '/spec/runStrategy', value: 'Once' },
    { op: 'replace', path: '/spec/runStrategy', value: 'Halted' },
  ]);
});

test('what the API would refuse is refused here, too', () => {
  const held = aVm({ status: { snapshotInProgress: 'snap' } });
  assert.throws(() => restartRequest('restart', held, aVmi()), {
    code: 409,
    message: /until snapshot "snap" completes/,
  });
  const busy = aVm({ status: { stateChangeRequests: [{ action: 'Start' }] } });
  assert.throws(() => restartRequest('restart', busy, aVmi()), { code: 500, message: /already underway/ });
});

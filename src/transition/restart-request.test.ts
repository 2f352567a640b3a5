import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm, aVmi } from '#api/machine-types/testing/sample-transition.ts';
import { buildRestartPatch } from '#transition/restart-request.ts';

const AS_SEEN = [
  { op: 'test', path: '/metadata/uid', value: 'vm-uid' },
  { op: 'test', path: '/metadata/resourceVersion', value: '1' },
];
const REQUESTS = '/status/stateChangeRequests';

test('a restart names the instance and requires the observed VM', () => {
  const { operations, subresource } = buildRestartPatch('restart', aVm({ status: {} }), aVmi());
  assert.equal(subresource, 'status');
  assert.deepEqual(operations, [
    ...AS_SEEN,
    { op: 'test', path: REQUESTS, value: null },
    { op: 'add', path: REQUESTS, value: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
  ]);
});

test('a VM with the strategy Once is set to Halted', () => {
  const { operations, subresource } = buildRestartPatch('stop', aVm({ runStrategy: 'Once' }), aVmi());
  assert.equal(subresource, undefined);
  assert.deepEqual(operations, [
    ...AS_SEEN,
    { op: 'test', path: '/spec/runStrategy', value: 'Once' },
    { op: 'replace', path: '/spec/runStrategy', value: 'Halted' },
  ]);
});

test('a restart that the API would refuse is refused here, too', () => {
  const held = aVm({ status: { snapshotInProgress: 'snap' } });
  assert.throws(() => buildRestartPatch('restart', held, aVmi()), {
    code: 409,
    message: /until snapshot "snap" completes/,
  });
  const busy = aVm({ status: { stateChangeRequests: [{ action: 'Start' }] } });
  assert.throws(() => buildRestartPatch('restart', busy, aVmi()), { code: 500, message: /already underway/ });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { buildPodStatus, refusedView, terminatedState, waitingView, type PodView } from '#node/pods/pod-status.ts';

const NOW = 1_900_000_000_000;
const AT = { hostIp: '127.0.0.1', nowMs: NOW };

const aPod = (status: Pod['status'] = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid: 'u' },
  spec: {
    containers: [
      { name: 'a', image: 'i' },
      { name: 'b', image: 'i' },
    ],
  },
  status,
});

const running: PodView = { phase: 'Running', state: { running: { startedAt: timestamp(NOW) } } };
const conditionOf = ({ conditions }: NonNullable<Pod['status']>, wanted: string) =>
  conditions?.find(({ type }) => type === wanted);

test('fields and conditions of other components are kept', () => {
  const old = { qosClass: 'Burstable', conditions: [{ type: 'PodScheduled', status: 'True' as const }] };
  const status = buildPodStatus(aPod(old), running, AT);
  assert.equal(status.qosClass, 'Burstable');
  assert.equal(conditionOf(status, 'PodScheduled')?.status, 'True');
});

test('a running pod is ready with every container', () => {
  const status = buildPodStatus(aPod(), running, AT);
  for (const type of ['Ready', 'ContainersReady', 'Initialized'])
    assert.equal(conditionOf(status, type)?.status, 'True');
  assert.deepEqual(
    status.containerStatuses?.map(({ name, ready, started }) => [name, ready, started]),
    [
      ['a', true, true],
      ['b', true, true],
    ],
  );
});

test('the same view gives the same status at a later time', () => {
  const status = buildPodStatus(aPod(), running, AT);
  assert.deepEqual(buildPodStatus(aPod(status), running, { ...AT, nowMs: NOW + 60_000 }), status);
});

const notReady: Record<string, { view: PodView; reason: string }> = {
  'a waiting pod': { view: waitingView('ClaimPending', 'm'), reason: 'ContainersNotReady' },
  'a refused pod': { view: refusedView('ImageUnsupported', 'm'), reason: 'PodFailed' },
  'an ended pod': {
    view: {
      phase: 'Succeeded',
      state: terminatedState({ exitCode: 0, reason: 'Completed', startedAtMs: NOW, finishedAtMs: NOW }),
    },
    reason: 'PodCompleted',
  },
};

for (const [sentence, { view, reason }] of Object.entries(notReady)) {
  test(`${sentence} is not ready: ${reason}`, () => {
    const status = buildPodStatus(aPod(), view, AT);
    const { status: ready, reason: why } = conditionOf(status, 'Ready')!;
    assert.deepEqual([ready, why], ['False', reason]);
    assert.ok(status.containerStatuses?.every((container) => !container.ready));
  });
}

test('an outdated reason is removed', () => {
  const old = buildPodStatus(aPod(), { ...running, reason: 'Old', message: 'old' }, AT);
  const status = buildPodStatus(aPod(old), running, AT);
  assert.deepEqual([status.reason, status.message], [undefined, undefined]);
});

test('long messages are truncated', () => {
  assert.equal(buildPodStatus(aPod(), refusedView('R', 'm'.repeat(5000)), AT).message?.length, 1024);
});

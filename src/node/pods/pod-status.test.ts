import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { podStatus, refusedView, terminated, waitingView, type PodView } from '#node/pods/pod-status.ts';

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

test('what others said of the pod stays', () => {
  const old = { qosClass: 'Burstable', conditions: [{ type: 'PodScheduled', status: 'True' as const }] };
  const status = podStatus(aPod(old), running, AT);
  assert.equal(status.qosClass, 'Burstable');
  assert.equal(conditionOf(status, 'PodScheduled')?.status, 'True');
});

test('a pod that runs is ready with every container', () => {
  const status = podStatus(aPod(), running, AT);
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

test('said again later, it is the same', () => {
  const status = podStatus(aPod(), running, AT);
  assert.deepEqual(podStatus(aPod(status), running, { ...AT, nowMs: NOW + 60_000 }), status);
});

const notReady: Record<string, { view: PodView; reason: string }> = {
  'a pod that waits': { view: waitingView('ClaimPending', 'm'), reason: 'ContainersNotReady' },
  'a pod that is refused': { view: refusedView('ImageUnsupported', 'm'), reason: 'PodFailed' },
  'a pod that has ended': {
    view: {
      phase: 'Succeeded',
      state: terminated({ exitCode: 0, reason: 'Completed', startedAtMs: NOW, finishedAtMs: NOW }),
    },
    reason: 'PodCompleted',
  },
};

for (const [sentence, { view, reason }] of Object.entries(notReady)) {
  test(`${sentence} is not ready: ${reason}`, () => {
    const status = podStatus(aPod(), view, AT);
    const { status: ready, reason: why } = conditionOf(status, 'Ready')!;
    assert.deepEqual([ready, why], ['False', reason]);
    assert.ok(status.containerStatuses?.every((container) => !container.ready));
  });
}

test('a reason that no longer holds is gone', () => {
  const old = podStatus(aPod(), { ...running, reason: 'Old', message: 'old' }, AT);
  const status = podStatus(aPod(old), running, AT);
  assert.deepEqual([status.reason, status.message], [undefined, undefined]);
});

test('messages are cut', () => {
  assert.equal(podStatus(aPod(), refusedView('R', 'm'.repeat(5000)), AT).message?.length, 1024);
});

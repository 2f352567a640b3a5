import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerState, Pod } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { earlierRuns, type EarlierRuns } from '#node/pods/earlier-runs.ts';

const NOW = 1_900_000_000_000;
const BEGAN = NOW - 60_000;

function aPod(state: ContainerState, lastState: ContainerState = {}, restartCount = 0): Pod {
  const [name, image] = ['main', 'selfsame/selfsame'];
  const status = { name, image, imageID: image, ready: false, restartCount, state, lastState };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name, image }] },
    status: { containerStatuses: [status] },
  };
}

const ended = { terminated: { exitCode: 1, startedAt: timestamp(BEGAN), finishedAt: timestamp(NOW - 1000) } };
const ENDED = { code: 1, startedAtMs: BEGAN, finishedAtMs: NOW - 1000 };
const waiting = { waiting: { reason: 'CrashLoopBackOff' } };

const cases: Record<string, { pod: Pod; want: EarlierRuns }> = {
  'one that never began': {
    pod: aPod({ waiting: { reason: 'CreateContainerConfigError' } }),
    want: { starts: 0, lastExit: undefined },
  },
  'one that nobody has reported': {
    pod: { ...aPod({}), status: { phase: 'Pending' } },
    want: { starts: 0, lastExit: undefined },
  },
  'one that ran until its agent was lost': {
    pod: aPod({ running: { startedAt: timestamp(BEGAN) } }, ended, 4),
    want: { starts: 5, lastExit: { code: 137, startedAtMs: BEGAN, finishedAtMs: NOW } },
  },
  'one that waited for its next start': { pod: aPod(waiting, ended, 2), want: { starts: 3, lastExit: ENDED } },
  'one that had ended': { pod: aPod(ended), want: { starts: 1, lastExit: ENDED } },
};
for (const [name, { pod, want }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(earlierRuns(pod, NOW), want));
}

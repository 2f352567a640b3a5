import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerState, Pod } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import { readEarlierRuns } from '#node/pods/earlier-runs.ts';
import type { EarlierRuns } from '#node/pods/program-run.ts';

const NOW = 1_900_000_000_000;
const STARTED = NOW - 60_000;

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

const ended = { terminated: { exitCode: 1, startedAt: timestamp(STARTED), finishedAt: timestamp(NOW - 1000) } };
const ENDED = { code: 1, startedAtMs: STARTED, finishedAtMs: NOW - 1000 };
const waiting = { waiting: { reason: 'CrashLoopBackOff' } };

const cases: Record<string, { pod: Pod; want: EarlierRuns }> = {
  'a container that never ran has no earlier run': {
    pod: aPod({ waiting: { reason: 'CreateContainerConfigError' } }),
    want: { starts: 0, lastExit: undefined },
  },
  'a pod without container status has no earlier run': {
    pod: { ...aPod({}), status: { phase: 'Pending' } },
    want: { starts: 0, lastExit: undefined },
  },
  'a running container was killed with its agent': {
    pod: aPod({ running: { startedAt: timestamp(STARTED) } }, ended, 4),
    want: { starts: 5, lastExit: { code: 137, startedAtMs: STARTED, finishedAtMs: NOW } },
  },
  'a container in backoff keeps its last exit': { pod: aPod(waiting, ended, 2), want: { starts: 3, lastExit: ENDED } },
  'a terminated container keeps its exit': { pod: aPod(ended), want: { starts: 1, lastExit: ENDED } },
};
for (const [sentence, { pod, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(readEarlierRuns(pod, NOW), want));
}

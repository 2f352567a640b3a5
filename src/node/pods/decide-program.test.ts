import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, PodContainer, PodSpec } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { decideProgram, type ProgramAction } from '#node/pods/decide-program.ts';
import type { ProgramState } from '#node/pods/program-run.ts';

const NOW = 1_900_000_000_000;

interface Facts {
  readonly phase?: NonNullable<Pod['status']>['phase'];
  readonly deleted?: number;
  readonly restartPolicy?: PodSpec['restartPolicy'];
  readonly container?: Partial<PodContainer>;
  readonly more?: Partial<PodSpec>;
  readonly owner?: string;
}

function aPod({
  phase = 'Pending',
  deleted,
  restartPolicy = 'Never',
  container,
  more,
  owner,
}: Facts = {}): Stored<Pod> {
  const ownerReferences = [{ kind: owner ?? 'Job', apiVersion: 'apps/v1', name: 'o', uid: 'o', controller: true }];
  const deletion = { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted ?? 0 };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: timestamp(NOW),
      ownerReferences,
      ...(deleted === undefined ? {} : deletion),
    },
    spec: {
      restartPolicy,
      containers: [{ name: 'main', image: 'selfsame/selfsame', args: ['version'], ...container }],
      ...more,
    },
    status: { phase },
  };
}

const aRun = (run: Partial<ProgramState>): ProgramState => ({
  runningSinceMs: undefined,
  lastExit: undefined,
  starts: 1,
  quickExits: 1,
  stopRequestedAtMs: undefined,
  ...run,
});
const exited = (code: number, agoMs = 0, starts = 1): ProgramState =>
  aRun({ lastExit: { code, startedAtMs: NOW - 60_000, finishedAtMs: NOW - agoMs }, starts, quickExits: starts });
const running = aRun({ runningSinceMs: NOW });

function summarizeAction(action: ProgramAction): string {
  switch (action.do) {
    case 'report': {
      const { phase, reason, state, restarts } = action.view;
      const why = reason ?? state.waiting?.reason ?? state.terminated?.exitCode;
      return ['report', phase, why, restarts ? `restarts=${restarts}` : undefined]
        .filter((word) => word !== undefined)
        .join(' ');
    }
    case 'kill':
      return action.signal;
    case 'recheck':
      return `recheck ${action.afterMs}`;
    default:
      return action.do;
  }
}

const cases: Record<string, { pod: Stored<Pod>; run?: ProgramState; want: string[] }> = {
  'starts a pod of this program': { pod: aPod(), want: ['start'] },
  'reports a running pod': { pod: aPod(), run: running, want: ['report Running'] },
  'reports success': { pod: aPod({ phase: 'Running' }), run: exited(0), want: ['report Succeeded 0'] },
  'reports failure': { pod: aPod({ phase: 'Running' }), run: exited(3), want: ['report Failed 3'] },
  'restarts a failed program at once with restartPolicy OnFailure': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3),
    want: ['start'],
  },
  'waits before the second restart': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 0, 2),
    want: ['report Running CrashLoopBackOff restarts=1', 'recheck 10000'],
  },
  'waits longer before the third restart': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 0, 3),
    want: ['report Running CrashLoopBackOff restarts=2', 'recheck 20000'],
  },
  'restarts when the backoff is over': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 10_000, 2),
    want: ['start'],
  },
  'does not restart a successful program with restartPolicy OnFailure': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(0),
    want: ['report Succeeded 0'],
  },
  'fails a pod whose process ended with an earlier agent': {
    pod: aPod({ phase: 'Running' }),
    want: ['report Failed 137'],
  },
  'restarts a process that ended with an earlier agent, with restartPolicy OnFailure': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    want: ['start'],
  },
  'does nothing for an ended pod': { pod: aPod({ phase: 'Succeeded' }), run: exited(0), want: [] },

  'refuses another image': { pod: aPod({ container: { image: 'nginx' } }), want: ['report Failed ImageUnsupported'] },
  'lets another image in a DaemonSet wait': {
    pod: aPod({ container: { image: 'proxy' }, owner: 'DaemonSet' }),
    want: ['report Pending ImageUnsupported'],
  },
  'refuses a command for administrators': {
    pod: aPod({ container: { args: ['up'] } }),
    want: ['report Failed CommandUnsupported'],
  },
  'refuses a pod without args': { pod: aPod({ container: { args: [] } }), want: ['report Failed CommandUnsupported'] },
  'refuses a pod with its own command': {
    pod: aPod({ container: { command: ['/bin/sh'] } }),
    want: ['report Failed CommandUnsupported'],
  },
  'refuses a variable that could change what runs': {
    pod: aPod({ container: { env: [{ name: 'NODE_OPTIONS', value: '--require=/tmp/x' }] } }),
    want: ['report Failed CommandUnsupported'],
  },
  'accepts a SELFSAME_ variable': {
    pod: aPod({ container: { env: [{ name: 'SELFSAME_LOG', value: 'debug' }] } }),
    want: ['start'],
  },
  'refuses init containers': {
    pod: aPod({ more: { initContainers: [{ name: 'i', image: 'selfsame/selfsame' }] } }),
    want: ['report Failed PodUnsupported'],
  },

  'removes a deleted pod that never ran': { pod: aPod({ deleted: 30 }), want: ['removePod'] },
  'asks the process of a deleted pod to end': {
    pod: aPod({ deleted: 30 }),
    run: running,
    want: ['SIGTERM', 'recheck 30000'],
  },
  'waits for the rest of the grace period': {
    pod: aPod({ deleted: 30 }),
    run: { ...running, stopRequestedAtMs: NOW - 20_000 },
    want: ['recheck 10000'],
  },
  'kills the process when the grace period is over': {
    pod: aPod({ deleted: 30 }),
    run: { ...running, stopRequestedAtMs: NOW - 30_000 },
    want: ['SIGKILL'],
  },
  'reports and removes a deleted pod whose process has ended': {
    pod: aPod({ phase: 'Running', deleted: 30 }),
    run: exited(143),
    want: ['report Failed 143', 'removePod'],
  },
  'does nothing for a deleted pod that a finalizer keeps': {
    pod: aPod({ phase: 'Failed', deleted: 0 }),
    run: exited(1),
    want: [],
  },
  'removes a deleted pod that was refused': {
    pod: aPod({ container: { image: 'nginx' }, deleted: 30 }),
    want: ['removePod'],
  },
};

for (const [sentence, { pod, run, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(decideProgram({ pod, run, nowMs: NOW }).map(summarizeAction), want));
}

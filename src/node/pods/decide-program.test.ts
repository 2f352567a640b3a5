import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, PodContainer, PodSpec } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { decideProgram, type ProgramAction } from '#node/pods/decide-program.ts';
import type { RunState } from '#node/pods/program-run.ts';

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
  const leaving = { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted ?? 0 };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: timestamp(NOW),
      ownerReferences,
      ...(deleted === undefined ? {} : leaving),
    },
    spec: {
      restartPolicy,
      containers: [{ name: 'main', image: 'selfsame/selfsame', args: ['version'], ...container }],
      ...more,
    },
    status: { phase },
  };
}

const aRun = (run: Partial<RunState>): RunState => ({
  runningSinceMs: undefined,
  lastExit: undefined,
  starts: 1,
  quickExits: 1,
  askedAtMs: undefined,
  ...run,
});
const exited = (code: number, agoMs = 0, starts = 1): RunState =>
  aRun({ lastExit: { code, startedAtMs: NOW - 60_000, finishedAtMs: NOW - agoMs }, starts, quickExits: starts });
const running = aRun({ runningSinceMs: NOW });

function shown(action: ProgramAction): string {
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
    case 'lookAgain':
      return `lookAgain ${action.afterMs}`;
    default:
      return action.do;
  }
}

const cases: Record<string, { pod: Stored<Pod>; run?: RunState; want: string[] }> = {
  'a pod of ours is started': { pod: aPod(), want: ['start'] },
  'and reported while it runs': { pod: aPod(), run: running, want: ['report Running'] },
  'a good end': { pod: aPod({ phase: 'Running' }), run: exited(0), want: ['report Succeeded 0'] },
  'a bad end': { pod: aPod({ phase: 'Running' }), run: exited(3), want: ['report Failed 3'] },
  'a bad end is tried again where the pod says so': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3),
    want: ['start'],
  },
  'the second time after a pause': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 0, 2),
    want: ['report Running CrashLoopBackOff restarts=1', 'lookAgain 10000'],
  },
  'ever later': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 0, 3),
    want: ['report Running CrashLoopBackOff restarts=2', 'lookAgain 20000'],
  },
  'when it is time': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(3, 10_000, 2),
    want: ['start'],
  },
  'a good end is one also there': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    run: exited(0),
    want: ['report Succeeded 0'],
  },
  'a process that ended with its agent': { pod: aPod({ phase: 'Running' }), want: ['report Failed 137'] },
  'is started again where the pod says so': {
    pod: aPod({ phase: 'Running', restartPolicy: 'OnFailure' }),
    want: ['start'],
  },
  'what has ended stays so': { pod: aPod({ phase: 'Succeeded' }), run: exited(0), want: [] },

  'another image': { pod: aPod({ container: { image: 'nginx' } }), want: ['report Failed ImageUnsupported'] },
  'another image in a DaemonSet waits': {
    pod: aPod({ container: { image: 'proxy' }, owner: 'DaemonSet' }),
    want: ['report Pending ImageUnsupported'],
  },
  'another command': { pod: aPod({ container: { args: ['up'] } }), want: ['report Failed CommandUnsupported'] },
  'no command': { pod: aPod({ container: { args: [] } }), want: ['report Failed CommandUnsupported'] },
  'a command of its own': {
    pod: aPod({ container: { command: ['/bin/sh'] } }),
    want: ['report Failed CommandUnsupported'],
  },
  'a variable that changes what runs': {
    pod: aPod({ container: { env: [{ name: 'NODE_OPTIONS', value: '--require=/tmp/x' }] } }),
    want: ['report Failed CommandUnsupported'],
  },
  'a variable of ours': {
    pod: aPod({ container: { env: [{ name: 'SELFSAME_LOG', value: 'debug' }] } }),
    want: ['start'],
  },
  'init containers': {
    pod: aPod({ more: { initContainers: [{ name: 'i', image: 'selfsame/selfsame' }] } }),
    want: ['report Failed PodUnsupported'],
  },

  'deleted before it ran': { pod: aPod({ deleted: 30 }), want: ['removePod'] },
  'deleted while it runs': { pod: aPod({ deleted: 30 }), run: running, want: ['SIGTERM', 'lookAgain 30000'] },
  'deleted and asked already': {
    pod: aPod({ deleted: 30 }),
    run: { ...running, askedAtMs: NOW - 20_000 },
    want: ['lookAgain 10000'],
  },
  'deleted and does not end': {
    pod: aPod({ deleted: 30 }),
    run: { ...running, askedAtMs: NOW - 30_000 },
    want: ['SIGKILL'],
  },
  'deleted and ended': {
    pod: aPod({ phase: 'Running', deleted: 30 }),
    run: exited(143),
    want: ['report Failed 143', 'removePod'],
  },
  'deleted and held by others': { pod: aPod({ phase: 'Failed', deleted: 0 }), run: exited(1), want: [] },
  'a refused one is removed, too': { pod: aPod({ container: { image: 'nginx' }, deleted: 30 }), want: ['removePod'] },
};

for (const [sentence, { pod, run, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(decideProgram({ pod, run, nowMs: NOW }).map(shown), want));
}

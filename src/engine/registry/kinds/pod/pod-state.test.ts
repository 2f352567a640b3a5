import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellsOf } from '#engine/registry/kinds/testing/sample-kind.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';

type Fields = Record<string, unknown>;

const running = (name: string, fields: Fields = {}) => ({
  name,
  ready: true,
  restartCount: 0,
  state: { running: { startedAt: '2026-01-01T11:58:00Z' } },
  ...fields,
});
const waiting = (name: string, reason: string) => ({
  name,
  ready: false,
  restartCount: 0,
  state: { waiting: { reason } },
});
const ended = (name: string, terminated: Fields, fields: Fields = {}) => ({
  name,
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode: 0, ...terminated } },
  ...fields,
});

interface Case {
  readonly containers?: string[];
  readonly init?: Fields[];
  readonly status: Fields;
  readonly deleted?: boolean;
  readonly want: [ready: string, status: string, restarts?: string];
}

const cases: Record<string, Case> = {
  'just made': { status: { phase: 'Pending' }, want: ['0/1', 'Pending'] },
  runs: { status: { phase: 'Running', containerStatuses: [running('a')] }, want: ['1/1', 'Running'] },
  'is being created': {
    status: { phase: 'Pending', containerStatuses: [waiting('a', 'ContainerCreating')] },
    want: ['0/1', 'ContainerCreating'],
  },
  'crashes repeatedly': {
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          ...waiting('a', 'CrashLoopBackOff'),
          restartCount: 3,
          lastState: { terminated: { exitCode: 1, finishedAt: '2026-01-01T11:59:30Z' } },
        },
      ],
    },
    want: ['0/1', 'CrashLoopBackOff', '3 (30s ago)'],
  },
  completed: {
    status: { phase: 'Succeeded', containerStatuses: [ended('a', { reason: 'Completed' })] },
    want: ['0/1', 'Completed'],
  },
  'failed without a reason': {
    status: { phase: 'Failed', containerStatuses: [ended('a', { exitCode: 3 })] },
    want: ['0/1', 'ExitCode:3'],
  },
  'was killed by a signal': {
    status: { phase: 'Failed', containerStatuses: [ended('a', { exitCode: 137, signal: 9 })] },
    want: ['0/1', 'Signal:9'],
  },
  'has one completed and one running container and is ready': {
    containers: ['a', 'b'],
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [ended('a', { reason: 'Completed' }), running('b')],
    },
    want: ['1/2', 'Running'],
  },
  'has one completed and one running container and is not ready': {
    containers: ['a', 'b'],
    status: { phase: 'Running', containerStatuses: [ended('a', { reason: 'Completed' }), running('b')] },
    want: ['1/2', 'NotReady'],
  },
  'has one completed and one failed container': {
    containers: ['a', 'b'],
    status: { phase: 'Running', containerStatuses: [ended('a', { reason: 'Completed' }), ended('b', { exitCode: 2 })] },
    want: ['0/2', 'Completed'],
  },
  'is evicted': { status: { phase: 'Failed', reason: 'Evicted' }, want: ['0/1', 'Evicted'] },
  'waits behind a gate': {
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
    want: ['0/1', 'SchedulingGated'],
  },
  initialises: {
    init: [{ name: 'i' }, { name: 'j' }],
    status: {
      phase: 'Pending',
      initContainerStatuses: [ended('i', {}), waiting('j', 'PodInitializing')],
      containerStatuses: [waiting('a', 'PodInitializing')],
    },
    want: ['0/1', 'Init:1/2'],
  },
  'fails to initialise': {
    init: [{ name: 'i' }],
    status: { phase: 'Pending', initContainerStatuses: [ended('i', { exitCode: 1, reason: 'Error' })] },
    want: ['0/1', 'Init:Error'],
  },
  'has a sidecar': {
    init: [{ name: 's', restartPolicy: 'Always' }],
    status: {
      phase: 'Running',
      initContainerStatuses: [running('s', { started: true, restartCount: 2 })],
      containerStatuses: [running('a')],
    },
    want: ['2/2', 'Running', '2'],
  },
  'is being deleted': {
    deleted: true,
    status: { phase: 'Running', containerStatuses: [running('a')] },
    want: ['1/1', 'Terminating'],
  },
  'is being deleted but has already ended': {
    deleted: true,
    status: { phase: 'Succeeded', containerStatuses: [ended('a', { reason: 'Completed' })] },
    want: ['0/1', 'Completed'],
  },
  'is being deleted on a lost node': {
    deleted: true,
    status: { phase: 'Running', reason: 'NodeLost', containerStatuses: [running('a')] },
    want: ['1/1', 'Unknown'],
  },
};

for (const [name, { containers = ['a'], init = [], status, deleted, want }] of Object.entries(cases)) {
  test(`a pod that ${name}`, () => {
    const cells = cellsOf(pods, {
      metadata: deleted === true ? { deletionTimestamp: '2026-01-01T11:59:00Z' } : {},
      spec: { containers: containers.map((container) => ({ name: container })), initContainers: init },
      status,
    });
    const [ready, reason, restarts = '0'] = want;
    assert.deepEqual([cells['Ready'], cells['Status'], cells['Restarts']], [ready, reason, restarts]);
  });
}

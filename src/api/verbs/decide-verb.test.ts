/** start, stop and restart: of every strategy and instance; and how refusals are said. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { can, denialError } from '#api/can.ts';
import { aVm, aVmi, aForeignVmi, renderDecision, type Case, testVerbs } from '#api/verbs/testing/verb-cases.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import type { Stored } from '#kube/meta.ts';

type Instance = 'none' | 'running' | 'succeeded' | 'failed';
const INSTANCES: Record<Instance, Stored<VirtualMachineInstance> | undefined> = {
  none: undefined,
  running: aVmi('Running'),
  succeeded: aVmi('Succeeded'),
  failed: aVmi('Failed'),
};
const NO_START = (strategy: string) => `409 ${strategy} does not support manual start requests`;
const NO_RESTART = (strategy: string) => `409 RunStategy ${strategy} does not support manual restart requests`;
const RUNS = '409 VM is already running';

const OFF = '409 VM is not running';
const NOT_SHORTER = '409 Halted only supports manual stop requests with a shorter graceperiod';
const RESTARTS = '202 [Stop vmi-uid, Start]';
const NO_INSTANCE = '409 VM is not running: Halted';

// Per verb and strategy: no instance, running, succeeded, failed.
const TABLE: Record<'start' | 'stop' | 'restart', Record<RunStrategy, [string, string, string, string]>> = {
  start: {
    Always: [NO_START('Always'), RUNS, NO_START('Always'), NO_START('Always')],
    Halted: ['202 ->Always', RUNS, '202 ->Always', '202 ->Always'],
    Manual: ['202 [Start]', RUNS, RESTARTS, RESTARTS],
    RerunOnFailure: [
      '202 [Start]',
      RUNS,
      RESTARTS,
      '409 RerunOnFailure does not support starting VM from failed state',
    ],
    Once: [NO_START('Once'), RUNS, NO_START('Once'), NO_START('Once')],
  },
  stop: {
    Always: ['202 ->Halted', '202 ->Halted', '202 ->Halted', '202 ->Halted'],
    Halted: [OFF, NOT_SHORTER, OFF, OFF],
    Manual: [OFF, '202 [Stop vmi-uid]', OFF, OFF],
    RerunOnFailure: [OFF, '202 [Stop vmi-uid]', OFF, OFF],
    Once: ['202 ->Halted', '202 ->Halted', '202 ->Halted', '202 ->Halted'],
  },
  restart: {
    Always: [NO_INSTANCE, RESTARTS, RESTARTS, RESTARTS],
    Halted: [NO_RESTART('Halted'), NO_RESTART('Halted'), NO_RESTART('Halted'), NO_RESTART('Halted')],
    Manual: [NO_INSTANCE, RESTARTS, RESTARTS, RESTARTS],
    RerunOnFailure: [NO_INSTANCE, RESTARTS, RESTARTS, RESTARTS],
    Once: [NO_RESTART('Once'), NO_RESTART('Once'), NO_RESTART('Once'), NO_RESTART('Once')],
  },
};

for (const [verb, strategies] of Object.entries(TABLE) as [keyof typeof TABLE, (typeof TABLE)['start']][]) {
  test(`${verb}: every strategy with every kind of instance`, () => {
    for (const [runStrategy, cells] of Object.entries(strategies)) {
      for (const [index, instance] of (Object.keys(INSTANCES) as Instance[]).entries()) {
        const world = { name: 'db', vm: aVm({ runStrategy }), vmi: INSTANCES[instance] };
        assert.equal(renderDecision(verb, world), cells[index], `${runStrategy}, ${instance}`);
      }
    }
  });
}

const BY_SNAPSHOT = '409 Cannot update vm running state until snapshot "s1" completes';
const BY_RESTORE = '409 Cannot update VM runStrategy until restore "r1" completes';

// Per verb: held by a snapshot, by a restore; of every strategy, whether it changes the spec or only asks in the status.
for (const [verb, bySnapshot, byRestore] of [
  ['start', BY_SNAPSHOT, BY_RESTORE],
  ['restart', BY_SNAPSHOT, BY_RESTORE],
  ['stop', BY_SNAPSHOT, undefined],
] as const) {
  test(`${verb}: of a VM that a snapshot or a restore holds`, () => {
    for (const [runStrategy, cells] of Object.entries(TABLE[verb])) {
      for (const [index, instance] of (Object.keys(INSTANCES) as Instance[]).entries()) {
        const world = (status: VmStatus) => ({
          name: 'db',
          vm: aVm({ runStrategy }, status),
          vmi: INSTANCES[instance],
        });
        assert.equal(renderDecision(verb, world({ snapshotInProgress: 's1' })), bySnapshot);
        assert.equal(renderDecision(verb, world({ restoreInProgress: 'r1' })), byRestore ?? cells[index]);
      }
    }
  });
}

const queued: VmStatus = { stateChangeRequests: [{ action: 'Start' }] };

const cases: Record<string, Case> = {
  'an instance that nobody has looked at yet does not stand in the way of a start': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    vmi: aVmi(undefined),
    want: '202 [Start]',
  },
  'running: false is halted, and a start says so in the same field': {
    verb: 'start',
    spec: { running: false },
    want: '202 ->true',
  },
  'running: true is always, and a stop says so in the same field': {
    verb: 'stop',
    spec: { running: true },
    want: '202 ->false',
  },
  'a stop leaves an instance alone that only has the name': {
    verb: 'stop',
    spec: { runStrategy: 'Always' },
    vmi: aForeignVmi(),
    options: { gracePeriod: 0 },
    want: '202 ->Halted',
  },
  'a restart leaves an instance alone that only has the name': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    vmi: aForeignVmi(),
    options: { gracePeriodSeconds: 0 },
    want: '409 VM is not running: Halted',
  },
  'an empty runStrategy says nothing beside running': {
    verb: 'stop',
    spec: { running: true, runStrategy: '' },
    want: '202 ->false',
  },
  'a VM that says both cannot be told anything': {
    verb: 'start',
    spec: { running: true, runStrategy: 'Always' },
    want: '500 Invalid RunStrategy (Always)',
  },
  'a paused start of a halted VM is a request': {
    verb: 'start',
    spec: { runStrategy: 'Halted' },
    options: { paused: true },
    want: '202 [Start paused]',
  },
  'a start during a queued request is refused': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    status: queued,
    want: '500 unable to complete request: stop/start already underway',
  },
  'a restart during a queued request is refused': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    status: queued,
    vmi: aVmi('Running'),
    want: '500 unable to complete request: stop/start already underway',
  },
  'a stop takes the place of what is queued': {
    verb: 'stop',
    spec: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
    vmi: aVmi('Running'),
    want: '202 [Stop vmi-uid]',
  },
  'a request ends the backoff of failed starts': {
    verb: 'start',
    spec: { runStrategy: 'RerunOnFailure' },
    status: { startFailure: { consecutiveFailCount: 3 } },
    want: '202 [Start]',
  },
  'a forced stop shortens the time of the instance first': {
    verb: 'stop',
    spec: { runStrategy: 'Always' },
    vmi: aVmi('Running'),
    options: { gracePeriod: 0 },
    want: '202 grace 0 ->Halted',
  },
  'a halted VM that is still stopping can be hurried': {
    verb: 'stop',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { spec: { terminationGracePeriodSeconds: 60 } }),
    options: { gracePeriod: 59 },
    want: '202 grace 59 [Stop vmi-uid]',
  },
  'a halted VM that is still stopping cannot be given more time, and nothing is patched': {
    verb: 'stop',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { spec: { terminationGracePeriodSeconds: 60 } }),
    options: { gracePeriod: 60 },
    want: NOT_SHORTER,
  },
  'a forced restart takes the pod away': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    vmi: aVmi('Running'),
    options: { gracePeriodSeconds: 0 },
    want: '202 grace 0 [Stop vmi-uid, Start] pod 1',
  },
  'a forced restart knows no grace': {
    verb: 'restart',
    options: { gracePeriodSeconds: 5 },
    want: '400 For force restart, only gracePeriod=0 is supported for now',
  },
  'nor a negative one': {
    verb: 'restart',
    options: { gracePeriodSeconds: -1 },
    want: '400 gracePeriod has to be greater or equal to 0',
  },
};

testVerbs(cases);

test('a request is written only over the queue that was seen', () => {
  const vm = aVm({ runStrategy: 'Manual' });
  for (const [seen, now] of [
    [undefined, {}],
    [{}, queued],
    [queued, {}],
  ] as const) {
    const answer = can('stop', { name: 'db', vm: { ...vm, status: seen }, vmi: aVmi('Running') });
    assert.ok('allowed' in answer);
    const [step] = answer.allowed;
    assert.ok(step?.do === 'patchVmStatus');
    assert.throws(() => applyJsonPatch({ ...vm, status: now }, step.patch), JSON.stringify({ seen, now }));
  }
});

test('refusals are answered in the words of Kubernetes', () => {
  const texts = {
    start: can('start', { name: 'db' }),
    pause: can('pause', { name: 'db' }),
    reset: can('reset', { name: 'db', vmi: aVmi('Running') }),
    stop: can('stop', { name: 'db', vm: aVm({ runStrategy: 'Manual' }) }),
    queue: can('start', { name: 'db', vm: aVm({ runStrategy: 'Manual' }, queued) }),
    console: can('console', { name: 'db', vmi: aVmi('Pending') }),
  };
  const shown = Object.values(texts).map((answer) => {
    if ('allowed' in answer) return 'allowed';
    const { code, reason, message } = denialError(answer.denied);
    return `${code} ${reason} ${message}`;
  });
  assert.deepEqual(shown, [
    '404 NotFound virtualmachine.kubevirt.io "db" not found',
    '404 NotFound virtualmachineinstance.kubevirt.io "db" not found',
    'allowed',
    '409 Conflict Operation cannot be fulfilled on virtualmachine.kubevirt.io "db": VM is not running',
    '500 InternalError Internal error occurred: unable to complete request: stop/start already underway',
    '400 BadRequest VMI is not running',
  ]);
});

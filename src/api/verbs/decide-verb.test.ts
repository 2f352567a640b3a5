/** Tests start, stop and restart for every strategy and instance, and the text of refusals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import { aVm, aVmi, aForeignVmi, renderDecision, type Case, testVerbs } from '#api/verbs/testing/verb-cases.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { Stored } from '#kube/meta.ts';
import { refusalToApiError } from '#api/verbs/verb.ts';

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
    // A stop of a halted VM that still runs has not begun: the VM stops and starts again.
    Halted: ['202 ->Always', RESTARTS, '202 ->Always', '202 ->Always'],
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

// Per verb: during a snapshot, during a restore; for every strategy.
for (const [verb, bySnapshot, byRestore] of [
  ['start', BY_SNAPSHOT, BY_RESTORE],
  ['restart', BY_SNAPSHOT, BY_RESTORE],
  ['stop', BY_SNAPSHOT, undefined],
] as const) {
  test(`${verb}: during a snapshot or a restore`, () => {
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

test('stop: during a snapshot that waits for the start of the guest', () => {
  const vm = aVm({ runStrategy: 'Always' }, { snapshotInProgress: 's1', printableStatus: 'ErrorPvcNotFound' });
  assert.equal(renderDecision('stop', { name: 'db', vm, vmi: aVmi('Pending') }), '202 ->Halted');
  assert.equal(renderDecision('restart', { name: 'db', vm, vmi: aVmi('Pending') }), BY_SNAPSHOT);
});

test('a VM whose claim is being deleted can be stopped, but not restarted', () => {
  const conditions = [
    { type: 'ClaimBeingDeleted', status: 'True' as const, message: 'the disk is going; stop the VM' },
  ];
  const vm = aVm({ runStrategy: 'Always' }, { conditions });
  const world = { name: 'db', vm, vmi: aVmi('Running') };
  assert.equal(renderDecision('stop', world), '202 ->Halted');
  assert.equal(renderDecision('restart', world), '409 Cannot restart the VM: the disk is going; stop the VM');
});

const queued: VmStatus = { stateChangeRequests: [{ action: 'Start' }] };

const cases: Record<string, Case> = {
  'allowed with an instance that has no phase yet': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    vmi: aVmi(undefined),
    want: '202 [Start]',
  },
  'running: false means Halted, and a start changes the same field': {
    verb: 'start',
    spec: { running: false },
    want: '202 ->true',
  },
  'running: true means Always, and a stop changes the same field': {
    verb: 'stop',
    spec: { running: true },
    want: '202 ->false',
  },
  'a stop ignores an instance of another owner': {
    verb: 'stop',
    spec: { runStrategy: 'Always' },
    vmi: aForeignVmi(),
    options: { gracePeriod: 0 },
    want: '202 ->Halted',
  },
  'a restart ignores an instance of another owner': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    vmi: aForeignVmi(),
    options: { gracePeriodSeconds: 0 },
    want: '409 VM is not running: Halted',
  },
  'an empty runStrategy counts as unset': {
    verb: 'stop',
    spec: { running: true, runStrategy: '' },
    want: '202 ->false',
  },
  'refused if running and runStrategy are set': {
    verb: 'start',
    spec: { running: true, runStrategy: 'Always' },
    want: '500 Invalid RunStrategy (Always)',
  },
  'a paused start of a halted VM is queued': {
    verb: 'start',
    spec: { runStrategy: 'Halted' },
    options: { paused: true },
    want: '202 [Start paused]',
  },
  'a stopping VM starts again when it is stopped': {
    verb: 'start',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { isDeleting: true }),
    want: '202 ->Always',
  },
  'a paused start of a stopping VM is queued': {
    verb: 'start',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { isDeleting: true }),
    options: { paused: true },
    want: '202 [Stop vmi-uid, Start paused]',
  },
  'a manual start follows a stop that has not begun': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }] },
    vmi: aVmi('Running'),
    want: RESTARTS,
  },
  'a manual start follows a stop': {
    verb: 'start',
    spec: { runStrategy: 'RerunOnFailure' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }] },
    vmi: aVmi('Running', { isDeleting: true }),
    want: RESTARTS,
  },
  'a second start of a stopping VM is refused': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
    vmi: aVmi('Running', { isDeleting: true }),
    want: '500 unable to complete request: stop/start already underway',
  },
  'a start is refused while an instance of another owner runs': {
    verb: 'start',
    spec: { runStrategy: 'Halted' },
    vmi: aForeignVmi(),
    want: RUNS,
  },
  'a start is refused while a request is queued': {
    verb: 'start',
    spec: { runStrategy: 'Manual' },
    status: queued,
    want: '500 unable to complete request: stop/start already underway',
  },
  'a restart is refused while a request is queued': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    status: queued,
    vmi: aVmi('Running'),
    want: '500 unable to complete request: stop/start already underway',
  },
  'a stop replaces queued requests': {
    verb: 'stop',
    spec: { runStrategy: 'Manual' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
    vmi: aVmi('Running'),
    want: '202 [Stop vmi-uid]',
  },
  'a stop withdraws the start of a halted VM that is still stopping': {
    verb: 'stop',
    spec: { runStrategy: 'Halted' },
    status: { stateChangeRequests: [{ action: 'Stop', uid: 'vmi-uid' }, { action: 'Start' }] },
    vmi: aVmi('Running', { isDeleting: true }),
    want: '202 [Stop vmi-uid]',
  },
  'a request ends the backoff after failed starts': {
    verb: 'start',
    spec: { runStrategy: 'RerunOnFailure' },
    status: { startFailure: { consecutiveFailCount: 3 } },
    want: '202 [Start]',
  },
  'a forced stop shortens the grace period of the instance first': {
    verb: 'stop',
    spec: { runStrategy: 'Always' },
    vmi: aVmi('Running'),
    options: { gracePeriod: 0 },
    want: '202 grace 0 ->Halted',
  },
  'the grace period of a stopping VM can be shortened': {
    verb: 'stop',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { spec: { terminationGracePeriodSeconds: 60 } }),
    options: { gracePeriod: 59 },
    want: '202 grace 59 [Stop vmi-uid]',
  },
  'the grace period of a stopping VM cannot be extended': {
    verb: 'stop',
    spec: { runStrategy: 'Halted' },
    vmi: aVmi('Running', { spec: { terminationGracePeriodSeconds: 60 } }),
    options: { gracePeriod: 60 },
    want: NOT_SHORTER,
  },
  'a forced restart deletes the pod': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    vmi: aVmi('Running'),
    options: { gracePeriodSeconds: 0 },
    want: '202 grace 0 [Stop vmi-uid, Start] pod 1',
  },
  'a forced restart refuses a grace period': {
    verb: 'restart',
    options: { gracePeriodSeconds: 5 },
    want: '400 For force restart, only gracePeriod=0 is supported for now',
  },
  'a forced restart refuses a negative grace period': {
    verb: 'restart',
    options: { gracePeriodSeconds: -1 },
    want: '400 gracePeriod has to be greater or equal to 0',
  },
};

testVerbs(cases);

test('the patch fails if the queue has changed', () => {
  const vm = aVm({ runStrategy: 'Manual' });
  for (const [seen, now] of [
    [undefined, {}],
    [{}, queued],
    [queued, {}],
  ] as const) {
    const answer = decideVerb('stop', { name: 'db', vm: { ...vm, status: seen }, vmi: aVmi('Running') });
    assert.ok('allowed' in answer);
    const [step] = answer.allowed;
    assert.ok(step?.do === 'patchVmStatus');
    assert.throws(() => applyJsonPatch({ ...vm, status: now }, step.patch), JSON.stringify({ seen, now }));
  }
});

test('refusals become Kubernetes errors', () => {
  const texts = {
    start: decideVerb('start', { name: 'db' }),
    pause: decideVerb('pause', { name: 'db' }),
    reset: decideVerb('reset', { name: 'db', vmi: aVmi('Running') }),
    stop: decideVerb('stop', { name: 'db', vm: aVm({ runStrategy: 'Manual' }) }),
    queue: decideVerb('start', { name: 'db', vm: aVm({ runStrategy: 'Manual' }, queued) }),
    console: decideVerb('console', { name: 'db', vmi: aVmi('Pending') }),
  };
  const shown = Object.values(texts).map((answer) => {
    if ('allowed' in answer) return 'allowed';
    const { code, reason, message } = refusalToApiError(answer.denied);
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

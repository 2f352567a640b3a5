import assert from 'node:assert/strict';
import { test } from 'node:test';
import { can, denialError, type CanWorld, type Step, type Verb, type VerbOptions } from '#api/can.ts';
import type { MigrationState } from '#api/migration-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import type { Stored } from '#kube/meta.ts';

const metadata = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

const VM_REFERENCE = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  name: 'db',
  uid: 'vm-uid',
  controller: true,
};

function aVm(spec: Partial<VirtualMachine['spec']>, status?: VmStatus): Stored<VirtualMachine> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...metadata, uid: 'vm-uid' },
    spec: { template: { spec: { domain: {} } }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

function aVmi(
  phase: VmiPhase | undefined,
  { spec, paused = false, moves }: { spec?: Partial<VmiSpec>; paused?: boolean; moves?: MigrationState } = {},
): Stored<VirtualMachineInstance> {
  const conditions = paused ? [{ type: 'Paused', status: 'True' as const }] : [];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...metadata, uid: 'vmi-uid', ownerReferences: [VM_REFERENCE] },
    spec: { domain: {}, ...spec },
    status: {
      ...(phase === undefined ? {} : { phase }),
      nodeName: 'node-1',
      conditions,
      ...(moves === undefined ? {} : { migrationState: moves }),
    },
  };
}

function aStranger(): Stored<VirtualMachineInstance> {
  const vmi = aVmi('Running');
  return { ...vmi, metadata: { ...vmi.metadata, ownerReferences: [{ ...VM_REFERENCE, uid: 'another' }] } };
}

/** `->X` the strategy becomes X; `[..]` the queue; `grace n` of the instance; `pod`; a migration; `node`. */
function told(step: Step, { vm }: CanWorld): string {
  switch (step.do) {
    case 'patchVm': {
      const { spec } = applyJsonPatch(vm, step.patch) as VirtualMachine;
      return `->${spec.runStrategy || spec.running}`;
    }
    case 'patchVmStatus': {
      const { status } = applyJsonPatch(vm, step.patch) as VirtualMachine;
      const queue = (status?.stateChangeRequests ?? []).map(
        ({ action, data, uid }) => `${action}${uid === undefined ? '' : ` ${uid}`}${data?.['paused'] ? ' paused' : ''}`,
      );
      return `[${queue.join(', ')}]${status?.startFailure === undefined ? '' : ' and a failure'}`;
    }
    case 'patchVmi':
      return `grace ${step.patch.find(({ op }) => op === 'replace')?.value as number}`;
    case 'deletePod':
      return `pod ${step.gracePeriodSeconds}`;
    case 'createMigration':
      return `${step.generateName}* ${JSON.stringify(step.spec)}`;
    case 'callNode':
      return `${step.nodeName} ${step.verb}`;
  }
}

function outcome(verb: Verb, world: CanWorld): string {
  const answer = can(verb, world);
  if ('denied' in answer) return `${answer.denied.code} ${answer.denied.message}`;
  return [answer.code, ...answer.allowed.map((step) => told(step, world))].join(' ');
}

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
        assert.equal(outcome(verb, world), cells[index], `${runStrategy}, ${instance}`);
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
        assert.equal(outcome(verb, world({ snapshotInProgress: 's1' })), bySnapshot);
        assert.equal(outcome(verb, world({ restoreInProgress: 'r1' })), byRestore ?? cells[index]);
      }
    }
  });
}

interface Case {
  readonly verb: Verb;
  readonly spec?: Partial<VirtualMachine['spec']>;
  readonly status?: VmStatus;
  readonly vmi?: Stored<VirtualMachineInstance>;
  readonly options?: VerbOptions;
  readonly want: string;
}

const queued: VmStatus = { stateChangeRequests: [{ action: 'Start' }] };

const MOVES: MigrationState = { migrationUid: 'm' };
const AWAY = '409 VMI is migrating';

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
    vmi: aStranger(),
    options: { gracePeriod: 0 },
    want: '202 ->Halted',
  },
  'a restart leaves an instance alone that only has the name': {
    verb: 'restart',
    spec: { runStrategy: 'Always' },
    vmi: aStranger(),
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
  'a guest that runs can be paused': { verb: 'pause', vmi: aVmi('Running'), want: '200 node-1 pause' },
  'not twice': { verb: 'pause', vmi: aVmi('Running', { paused: true }), want: '409 VMI is already paused' },
  'nor before it runs': { verb: 'pause', vmi: aVmi('Scheduled'), want: OFF },
  'a paused guest can be unpaused': {
    verb: 'unpause',
    vmi: aVmi('Running', { paused: true }),
    want: '200 node-1 unpause',
  },
  'a guest that is not paused cannot be unpaused': {
    verb: 'unpause',
    vmi: aVmi('Running'),
    want: '409 VMI is not paused',
  },
  'nor one that does not run': { verb: 'unpause', vmi: aVmi('Failed'), want: '409 VMI is not running' },
  'a guest can be asked to reboot': { verb: 'softreboot', vmi: aVmi('Running'), want: '200 node-1 softreboot' },
  'but not a paused one': {
    verb: 'softreboot',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'nor one that would not hear it': {
    verb: 'softreboot',
    vmi: aVmi('Running', { spec: { domain: { features: { acpi: { enabled: false } } } } }),
    want: '409 VMI neither have the agent connected nor the ACPI feature enabled',
  },
  'a guest can be reset': { verb: 'reset', vmi: aVmi('Running'), want: '200 node-1 reset' },
  'a pending one cannot': {
    verb: 'reset',
    vmi: aVmi('Pending'),
    want: '400 Failed to reset non-running VMI with phase Pending: Unable to connect to VirtualMachineInstance because phase is Pending instead of Running or Scheduled',
  },
  'a console needs a guest that runs': { verb: 'console', vmi: aVmi('Scheduling'), want: '400 VMI is not running' },
  'a console of a failed guest is a conflict': {
    verb: 'console',
    vmi: aVmi('Failed'),
    want: '409 VMI is in failed status',
  },
  'a console needs a serial port': {
    verb: 'console',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachSerialConsole: false } } } }),
    want: '400 No serial consoles are present.',
  },
  'a display needs a guest that runs': { verb: 'vnc', vmi: aVmi('Scheduled'), want: '400 VMI is not running' },
  'a display is of the instance': { verb: 'vnc', vmi: aVmi('Running'), want: '200 node-1 vnc' },
  'also of a paused one': { verb: 'vnc', vmi: aVmi('Running', { paused: true }), want: '200 node-1 vnc' },
  'a picture needs a display': {
    verb: 'vnc/screenshot',
    vmi: aVmi('Running', { spec: { domain: { devices: { autoattachGraphicsDevice: false } } } }),
    want: '400 No graphics devices are present.',
  },
  'ports of a VM are those of its instance': {
    verb: 'portforward',
    vmi: aVmi('Running'),
    want: '200 node-1 portforward',
  },
  'a VM that was not started has none': { verb: 'portforward', want: '409 VMI is not started' },
  'those of a paused guest would not answer': {
    verb: 'portforward',
    vmi: aVmi('Running', { paused: true }),
    want: '409 VMI is paused',
  },
  'nor those of one that does not run': {
    verb: 'portforward',
    vmi: aVmi('Scheduling'),
    want: '400 VMI is not running',
  },
  'whoever may reach the VM may not reach an instance that only has its name': {
    verb: 'portforward',
    vmi: aStranger(),
    want: '500 unable to retrieve vmi [db] for vm: it is not of this VM',
  },
  'a running VM gets a migration of its name': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db"}',
  },
  'to a node that has what is asked for': {
    verb: 'migrate',
    vmi: aVmi('Running'),
    options: { addedNodeSelector: { zone: 'b' } },
    want: '202 kubevirt-migrate-vm-* {"vmiName":"db","addedNodeSelector":{"zone":"b"}}',
  },
  'a VM without an instance goes nowhere': { verb: 'migrate', want: '404 not found' },
  'nor does an instance that only has the name': { verb: 'migrate', vmi: aStranger(), want: '404 not found' },
  'nor one that does not run yet': { verb: 'migrate', vmi: aVmi('Scheduled'), want: OFF },
  'a guest on its way is not paused': { verb: 'pause', vmi: aVmi('Running', { moves: MOVES }), want: AWAY },
  'nor unpaused': { verb: 'unpause', vmi: aVmi('Running', { paused: true, moves: MOVES }), want: AWAY },
  'nor rebooted': { verb: 'softreboot', vmi: aVmi('Running', { moves: MOVES }), want: AWAY },
  'nor reset': { verb: 'reset', vmi: aVmi('Running', { moves: MOVES }), want: AWAY },
  'but its console is there': { verb: 'console', vmi: aVmi('Running', { moves: MOVES }), want: '200 node-1 console' },
  'and it can be stopped': {
    verb: 'stop',
    vmi: aVmi('Running', { moves: MOVES }),
    want: '202 ->Halted',
  },
  'a guest that has arrived is paused': {
    verb: 'pause',
    vmi: aVmi('Running', { moves: { ...MOVES, completed: true } }),
    want: '200 node-1 pause',
  },
};

for (const [name, { verb, spec = { runStrategy: 'Always' }, status, vmi, options, want }] of Object.entries(cases)) {
  test(`${verb}: ${name}`, () => {
    assert.equal(outcome(verb, { name: 'db', vm: aVm(spec, status), vmi, options }), want);
  });
}

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

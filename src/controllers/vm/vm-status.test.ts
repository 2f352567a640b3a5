import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { PrintableStatus, VmStatus } from '#api/virtual-machine/schema.ts';
import { backoffSeconds, startFailureOf } from '#controllers/vm/start/start-failure.ts';
import {
  aRecord,
  aVm,
  aVmi,
  aWorld,
  DELETED,
  NOW,
  NOW_MS,
  STATUS_AFTER_RUN,
  UUID,
} from '#controllers/vm/testing/vm-world.ts';
import type { ValueSharers } from '#controllers/vm/identity/value-holders.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';

const MIGRATING = { migrationState: { migrationUid: 'm' } };
const PAUSED = { conditions: [{ type: 'Paused', status: 'True' as const }] };
const withFalseCondition = (type: string, reason: string) => ({
  conditions: [{ type, status: 'False' as const, reason }],
});
const claim = (phase: 'Pending' | 'Bound'): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root' },
  spec: {},
  status: { phase },
});
const failure = { consecutiveFailCount: 2, lastFailedVMIUID: 'earlier', retryAfterTimestamp: timestamp(NOW_MS + 9000) };

const printableCases: Record<string, [PrintableStatus, Partial<VmWorld>]> = {
  'a VM under deletion': ['Terminating', { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running') }],
  'an instance under deletion': ['Stopping', { vmi: aVmi('Running', { metadata: DELETED }) }],
  'an instance that is to be deleted': ['Stopping', { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running') }],
  'a guest that migrates': ['Migrating', { vmi: aVmi('Running', { status: MIGRATING }) }],
  'a paused guest that migrates': ['Migrating', { vmi: aVmi('Running', { status: { ...PAUSED, ...MIGRATING } }) }],
  'a guest that has migrated': [
    'Running',
    { vmi: aVmi('Running', { status: { migrationState: { migrationUid: 'm', completed: true } } }) },
  ],
  'a guest that ended while it migrated': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Succeeded', { status: MIGRATING }) },
  ],
  'a guest that is to stop while it migrates': [
    'Stopping',
    { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running', { status: MIGRATING }) },
  ],
  'a paused guest': ['Paused', { vmi: aVmi('Running', { status: PAUSED }) }],
  'a running guest': ['Running', { vmi: aVmi('Running') }],
  'a running guest whose claim was deleted': ['Running', { vmi: aVmi('Running'), claims: [{ name: 'root' }] }],
  'an instance whose claim is missing': ['ErrorPvcNotFound', { vmi: aVmi('Pending'), claims: [{ name: 'root' }] }],
  'an instance that reports a missing claim': [
    'ErrorPvcNotFound',
    { vmi: aVmi('Pending', { status: withFalseCondition('Synchronized', 'FailedPvcNotFound') }) },
  ],
  'an instance that fits on no node': [
    'ErrorUnschedulable',
    { vmi: aVmi('Scheduling', { status: withFalseCondition('PodScheduled', 'Unschedulable') }) },
  ],
  'an instance whose claim is not bound': [
    'WaitingForVolumeBinding',
    { vmi: aVmi('Scheduling'), claims: [{ name: 'root', claim: claim('Pending') }] },
  ],
  'an instance whose image cannot be pulled': [
    'ErrImagePull',
    { vmi: aVmi('Scheduled', { status: withFalseCondition('Synchronized', 'ErrImagePull') }) },
  ],
  'an instance whose image still cannot be pulled': [
    'ImagePullBackOff',
    { vmi: aVmi('Scheduled', { status: withFalseCondition('Synchronized', 'ImagePullBackOff') }) },
  ],
  'an instance without a phase': ['Starting', { vmi: aVmi(undefined) }],
  'an instance that has all it needs': [
    'Starting',
    { vmi: aVmi('Scheduled'), claims: [{ name: 'root', claim: claim('Bound') }] },
  ],
  'a VM that is about to get an instance': ['Starting', {}],
  'a VM that failed to start': ['CrashLoopBackOff', { vm: aVm({ status: { startFailure: failure } }) }],
  'a VM whose instance failed to start': ['CrashLoopBackOff', { vmi: aVmi('Failed') }],
  'a VM whose instance ran and failed': ['Stopped', { vmi: aVmi('Failed', { status: STATUS_AFTER_RUN }) }],
  'a halted VM': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted' }), claims: [{ name: 'root', claim: claim('Pending') }] },
  ],
  'a halted VM that had failed to start': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted', status: { startFailure: failure } }) },
  ],
  'a finished instance': ['Stopped', { vm: aVm({ runStrategy: 'Manual' }), vmi: aVmi('Succeeded') }],
  'an instance on a node that does not answer': ['Unknown', { vmi: aVmi('Unknown') }],
};

for (const [name, [want, overrides]] of Object.entries(printableCases)) {
  test(`${name}: ${want}`, () => assert.equal(vmStatusOf(aWorld(overrides)).printableStatus, want));
}

test('the holder of the VM is in the status, and a delayed start is not reported as one', () => {
  const held = (kind: 'snapshot' | 'restore') => vmStatusOf(aWorld({ lock: { kind, name: 'nightly' } }));
  const reported = ({ snapshotInProgress, restoreInProgress, printableStatus }: VmStatus) =>
    [snapshotInProgress, restoreInProgress, printableStatus].join();
  assert.equal(reported(held('snapshot')), 'nightly,,Stopped');
  assert.equal(reported(held('restore')), ',nightly,Stopped');
  const vm = aVm({ status: { snapshotInProgress: 'nightly', restoreInProgress: 'nightly' } });
  assert.equal(reported(vmStatusOf(aWorld({ vm }))), ',,Starting');
});

const MARKED = { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'vmi-uid' };
const running = aVmi('Running', { metadata: { uid: 'vmi-uid' } });
const marks: Record<string, { status: VmStatus; world?: Partial<VmWorld>; want: VmStatus }> = {
  'a VM without a mark gets none': { status: {}, world: { vmi: running }, want: {} },
  'a mark that is false stays false': {
    status: { machineTypeRestartRequired: false },
    world: { vmi: running },
    want: { machineTypeRestartRequired: false },
  },
  'a mark stays while its instance exists': { status: MARKED, world: { vmi: running }, want: MARKED },
  'a mark is removed when there is no instance': { status: MARKED, want: { machineTypeRestartRequired: false } },
  'a mark is removed when there is another instance': {
    status: MARKED,
    world: { vmi: aVmi('Running', { metadata: { uid: 'next' } }) },
    want: { machineTypeRestartRequired: false },
  },
  'a mark stays if only the cache does not show its instance': {
    status: MARKED,
    world: { markedInstance: running },
    want: MARKED,
  },
};
for (const [name, { status, world, want }] of Object.entries(marks)) {
  test(`the mark of a machine type transition: ${name}`, () => {
    const next = vmStatusOf(aWorld({ vm: aVm({ status }), ...world }));
    const mark = Object.entries(next).filter(([field]) => field.startsWith('machineType'));
    assert.deepEqual(Object.fromEntries(mark), want);
  });
}

const sharers: Record<string, [ValueSharers | undefined, string | undefined]> = {
  'a unique uuid is not reported': [undefined, undefined],
  'another VM with the same uuid is named': [{ names: ['ns/x'], hasMore: false }, 'VirtualMachine "x"'],
  'several VMs are named': [{ names: ['ns/x', 'ns/y', 'ns/z'], hasMore: false }, 'VirtualMachine "x", "y", "z"'],
  'the remaining VMs are not named': [
    { names: ['ns/x', 'ns/y', 'ns/z'], hasMore: true },
    'VirtualMachine "x", "y", "z" and others',
  ],
  'VMs in other namespaces are not named': [
    { names: ['ns/x', 'other/x'], hasMore: false },
    'VirtualMachine "x" and VirtualMachines in other namespaces',
  ],
};

for (const [name, [others, want]] of Object.entries(sharers)) {
  test(`DuplicateFirmwareUUID: ${name}`, () => {
    const mirrored = [{ type: 'DuplicateFirmwareUUID', status: 'True' as const, message: 'not for it to say' }];
    const vm = aVm({ status: { conditions: mirrored } });
    const vmi = aVmi('Running', { status: { conditions: mirrored } });
    const { conditions = [] } = vmStatusOf(aWorld({ vm, vmi, sharers: others }));
    const reported = conditions.filter(({ type }) => type === 'DuplicateFirmwareUUID');
    assert.deepEqual(
      reported.map(({ status, reason, message }) => [status, reason, message]),
      want === undefined
        ? []
        : [
            [
              'True',
              'DuplicateFirmwareUUID',
              `Firmware uuid ${UUID} is also used by ${want}; change the uuid of all but one of them`,
            ],
          ],
    );
  });
}

test('DuplicateMACAddress: the addresses that other VMs have are listed, at most three', () => {
  const sharedMacs = [1, 2, 3, 4].map((n) => ({
    macAddress: `02:00:00:00:00:0${n}`,
    sharers: { names: n === 1 ? ['ns/x'] : ['other/x'], hasMore: false },
  }));
  const messageFor = (count: number) => {
    const { conditions = [] } = vmStatusOf(aWorld({ sharedMacs: sharedMacs.slice(0, count) }));
    return conditions.find(({ type }) => type === 'DuplicateMACAddress')?.message;
  };
  assert.equal(messageFor(0), undefined);
  assert.equal(
    messageFor(1),
    'MAC address 02:00:00:00:00:01 is also used by VirtualMachine "x"; change the address of all but one of them',
  );
  assert.match(
    messageFor(4) ?? '',
    /02 is also used by VirtualMachines in other namespaces; .*; so are other MAC addresses of this VirtualMachine; change/,
  );
});

test('a VM without an instance is not ready, and keeps the time of that transition', () => {
  const before = '2026-01-01T10:00:00Z';
  const ready = (status: 'True' | 'False', lastTransitionTime: string) => ({
    type: 'Ready',
    status,
    lastTransitionTime,
  });
  const notExists = { reason: 'VMINotExists', message: 'VMI does not exist' };
  const seen = [ready('True', before), ready('False', before)].map((old) => {
    const vm = aVm({ runStrategy: 'Halted', status: { conditions: [old] } });
    return JSON.parse(JSON.stringify(vmStatusOf(aWorld({ vm })).conditions));
  });
  assert.deepEqual(seen, [[{ ...ready('False', NOW), ...notExists }], [{ ...ready('False', before), ...notExists }]]);
});

test('the conditions of the instance are copied, those of the VM are its own', () => {
  const mirrored = [
    { type: 'Ready', status: 'True' as const, lastTransitionTime: '2026-01-01T10:00:00Z' },
    { type: 'Paused', status: 'True' as const, reason: 'PausedByUser', message: 'VMI was paused by user' },
    { type: 'RestartRequired', status: 'True' as const, message: 'not for it to say' },
  ];
  const vm = aVm({ template: { domain: {} }, status: { conditions: [{ type: 'AgentConnected', status: 'True' }] } });
  const { conditions, ready, created } = vmStatusOf(
    aWorld({ vm, vmi: aVmi('Running', { status: { conditions: mirrored } }), identity: undefined }),
  );
  assert.deepEqual(
    conditions?.map(({ type, message = '' }) => `${type}: ${message}`),
    [
      'Ready: ',
      'RestartRequired: a non-live-updatable field was changed in the template spec',
      'Paused: VMI was paused by user',
    ],
  );
  assert.deepEqual({ ready, created }, { ready: true, created: true });
});

test('a VM whose instance has no Ready condition is not ready', () => {
  const { conditions } = vmStatusOf(aWorld({ vmi: aVmi('Scheduling') }));
  assert.equal(conditions?.[0]?.reason, 'VMIConditionMissing');
});

test('a start that waits for imported devices is reported, a stopped VM is not', () => {
  const metadata = { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{"from":"OVF","devices":[]}' } };
  const reported = (vm: ReturnType<typeof aVm>) => {
    const { conditions, printableStatus } = vmStatusOf(aWorld({ vm, identity: aRecord(vm) }));
    return [printableStatus, conditions?.map(({ type, reason }) => `${type} ${reason}`).join()];
  };
  assert.deepEqual(reported(aVm({ metadata })), ['Starting', 'Ready ImportedDevicesPending']);
  assert.deepEqual(reported(aVm({ metadata, runStrategy: 'Halted' })), ['Stopped', 'Ready VMINotExists']);
});

const NO_IMPORT = aVm({ metadata: { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{}' } } });
const refusalCases: Record<string, [RegExp | undefined, Partial<VmWorld>]> = {
  'an import that cannot be read fails a start': [
    /imported-devices from is missing; correct or remove the annotation$/,
    { vm: NO_IMPORT },
  ],
  'an import that cannot be read is ignored once its devices are recorded': [
    undefined,
    { vm: NO_IMPORT, identity: { ...aRecord(NO_IMPORT), status: { devices: [] } } },
  ],
  'an instance of another owner is a failure': [
    /VirtualMachineInstance "db" does not belong to this VM/,
    { foreignVmi: aVmi('Running') },
  ],
  'the record of an earlier VM fails a start': [
    /VirtualMachineIdentity "db" of an earlier VM still exists/,
    { identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
  ],
  'the record of an earlier VM does not affect a halted VM': [
    undefined,
    { vm: aVm({ runStrategy: 'Halted' }), identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
  ],
  'a VM under deletion has no such failure': [
    undefined,
    { vm: aVm({ metadata: DELETED }), foreignVmi: aVmi('Running') },
  ],
  'an unknown strategy is a failure': [
    /^unknown runstrategy: Sometimes$/,
    { vm: aVm({ spec: { runStrategy: 'Sometimes' } }) },
  ],
};

for (const [name, [want, overrides]] of Object.entries(refusalCases)) {
  test(name, () => {
    const { conditions, created } = vmStatusOf(aWorld(overrides));
    const reported = conditions?.find(({ type }) => type === 'Failure')?.message;
    if (want === undefined) assert.equal(reported, undefined);
    else assert.match(reported ?? '', want);
    assert.equal(created, false);
  });
}

test('the strategy is recorded once there was an instance, and RerunOnFailure only with an instance', () => {
  const remembered = (known: string | undefined, runStrategy: 'Halted' | 'RerunOnFailure', instance: boolean) => {
    const vm = aVm({ runStrategy, status: known === undefined ? {} : { runStrategy: known } });
    return vmStatusOf(aWorld({ vm, ...(instance ? { vmi: aVmi('Running', { vm }) } : {}) })).runStrategy;
  };
  assert.equal(remembered(undefined, 'Halted', false), undefined);
  assert.equal(remembered('Always', 'Halted', false), 'Halted');
  assert.equal(remembered('Halted', 'RerunOnFailure', false), 'Halted');
  assert.equal(remembered('Halted', 'RerunOnFailure', true), 'RerunOnFailure');
  assert.equal(remembered(undefined, 'RerunOnFailure', true), 'RerunOnFailure');
});

test('an instance that never ran counts as one more failure, once', () => {
  const first = startFailureOf(aWorld({ vmi: aVmi('Failed') }));
  assert.equal(first?.consecutiveFailCount, 1);
  const vm = aVm({ status: { startFailure: first } });
  const later = NOW_MS + 1000;
  assert.deepEqual(startFailureOf(aWorld({ vm, vmi: aVmi('Failed'), now: later })), first);
  assert.deepEqual(startFailureOf(aWorld({ vm, now: later })), first);
  const second = startFailureOf(aWorld({ vm, vmi: aVmi('Failed', { metadata: { uid: 'next' } }), now: later }));
  assert.equal(second?.consecutiveFailCount, 2);
  assert.equal(Date.parse(second?.retryAfterTimestamp ?? ''), later + backoffSeconds(2, 'next') * 1000);
});

test('an instance that ran, and a strategy that does not start by itself, reset the failures', () => {
  const status = { startFailure: failure };
  const vmi = aVmi('Failed', { status: STATUS_AFTER_RUN });
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status }), vmi })), undefined);
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status }), vmi: aVmi('Running') })), undefined);
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status, runStrategy: 'Manual' }) })), undefined);
  assert.deepEqual(startFailureOf(aWorld({ vm: aVm({ status, runStrategy: 'Once' }) })), failure);
});

test('the backoff grows with the square of the failures, is extended by up to a half and ends at 300 seconds', () => {
  for (const [failures, minimum] of [
    [1, 10],
    [2, 40],
    [3, 90],
    [4, 160],
  ] as const) {
    const times = Array.from({ length: 50 }, (_, n) => backoffSeconds(failures, `uid-${n}`));
    assert.ok(Math.min(...times) >= minimum && Math.max(...times) <= minimum * 1.5, `${failures}: ${times.join()}`);
    assert.ok(new Set(times).size > 2, 'spread');
  }
  assert.equal(backoffSeconds(6, 'uid'), 300);
  assert.equal(backoffSeconds(1000, 'uid'), 300);
});

test('the reason of a failed start is reported until a start succeeds', () => {
  const refused = { reason: 'InvalidDefinition', message: 'spec.domain.devices.interfaces[0].pciAddress: is taken' };
  const status = vmStatusOf(aWorld({ vmi: aVmi('Failed', { status: refused }) }));
  assert.equal(status.startFailure?.message, refused.message);
  const later = vmStatusOf(aWorld({ vm: aVm({ status: { startFailure: status.startFailure } }) }));
  const failure = later.conditions?.find(({ type }) => type === 'Failure');
  assert.deepEqual(
    [failure?.reason, failure?.message],
    ['InvalidDefinition', `The last start failed: ${refused.message}`],
  );
  const vm = aVm({ status: { startFailure: status.startFailure } });
  assert.ok(!vmStatusOf(aWorld({ vm, vmi: aVmi('Running') })).conditions?.some(({ type }) => type === 'Failure'));
});

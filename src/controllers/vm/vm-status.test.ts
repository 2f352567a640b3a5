import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import type { PrintableStatus, VmStatus } from '#api/virtual-machine/schema.ts';
import { backoffSeconds, startFailureOf } from '#controllers/vm/start-failure.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED, NOW, NOW_MS, RAN, UUID } from '#controllers/vm/vm-world.fixture.ts';
import type { UuidSharers } from '#controllers/vm/uuid-holders.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { vmStatusOf } from '#controllers/vm/vm-status.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';

const MIGRATING = { migrationState: { migrationUid: 'm' } };
const PAUSED = { conditions: [{ type: 'Paused', status: 'True' as const }] };
const heldUp = (type: string, reason: string) => ({ conditions: [{ type, status: 'False' as const, reason }] });
const claim = (phase: 'Pending' | 'Bound'): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root' },
  spec: {},
  status: { phase },
});
const failure = { consecutiveFailCount: 2, lastFailedVMIUID: 'earlier', retryAfterTimestamp: timestamp(NOW_MS + 9000) };

const words: Record<string, [PrintableStatus, Partial<VmWorld>]> = {
  'a VM under deletion': ['Terminating', { vm: aVm({ metadata: DELETED }), vmi: aVmi('Running') }],
  'an instance under deletion': ['Stopping', { vmi: aVmi('Running', { metadata: DELETED }) }],
  'an instance that is to go': ['Stopping', { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running') }],
  'a guest that moves to another node': ['Migrating', { vmi: aVmi('Running', { status: MIGRATING }) }],
  'a paused guest that moves': ['Migrating', { vmi: aVmi('Running', { status: { ...PAUSED, ...MIGRATING } }) }],
  'a guest that has moved': [
    'Running',
    { vmi: aVmi('Running', { status: { migrationState: { migrationUid: 'm', completed: true } } }) },
  ],
  'a guest that ended while it moved': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Succeeded', { status: MIGRATING }) },
  ],
  'a guest that is to stop while it moves': [
    'Stopping',
    { vm: aVm({ runStrategy: 'Halted' }), vmi: aVmi('Running', { status: MIGRATING }) },
  ],
  'a paused guest': ['Paused', { vmi: aVmi('Running', { status: PAUSED }) }],
  'a guest that runs': ['Running', { vmi: aVmi('Running') }],
  'a guest that runs without a claim that was deleted': [
    'Running',
    { vmi: aVmi('Running'), claims: [{ name: 'root' }] },
  ],
  'an instance whose claim is missing': ['ErrorPvcNotFound', { vmi: aVmi('Pending'), claims: [{ name: 'root' }] }],
  'an instance that says that a claim is missing': [
    'ErrorPvcNotFound',
    { vmi: aVmi('Pending', { status: heldUp('Synchronized', 'FailedPvcNotFound') }) },
  ],
  'an instance that no node takes': [
    'ErrorUnschedulable',
    { vmi: aVmi('Scheduling', { status: heldUp('PodScheduled', 'Unschedulable') }) },
  ],
  'an instance whose claim is not bound': [
    'WaitingForVolumeBinding',
    { vmi: aVmi('Scheduling'), claims: [{ name: 'root', claim: claim('Pending') }] },
  ],
  'an instance whose image is not there': [
    'ErrImagePull',
    { vmi: aVmi('Scheduled', { status: heldUp('Synchronized', 'ErrImagePull') }) },
  ],
  'an instance whose image is still not there': [
    'ImagePullBackOff',
    { vmi: aVmi('Scheduled', { status: heldUp('Synchronized', 'ImagePullBackOff') }) },
  ],
  'an instance that nobody has looked at': ['Starting', { vmi: aVmi(undefined) }],
  'an instance that has all it needs': [
    'Starting',
    { vmi: aVmi('Scheduled'), claims: [{ name: 'root', claim: claim('Bound') }] },
  ],
  'a VM that is about to get an instance': ['Starting', {}],
  'a VM that failed to start': ['CrashLoopBackOff', { vm: aVm({ status: { startFailure: failure } }) }],
  'a VM whose instance failed to start': ['CrashLoopBackOff', { vmi: aVmi('Failed') }],
  'a VM whose instance ran and failed': ['Stopped', { vmi: aVmi('Failed', { status: RAN }) }],
  'a halted VM': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted' }), claims: [{ name: 'root', claim: claim('Pending') }] },
  ],
  'a halted VM that had failed to start': [
    'Stopped',
    { vm: aVm({ runStrategy: 'Halted', status: { startFailure: failure } }) },
  ],
  'a finished instance': ['Stopped', { vm: aVm({ runStrategy: 'Manual' }), vmi: aVmi('Succeeded') }],
  'an instance on a node that nobody hears of': ['Unknown', { vmi: aVmi('Unknown') }],
};

for (const [name, [want, overrides]] of Object.entries(words)) {
  test(`${name}: ${want}`, () => assert.equal(vmStatusOf(aWorld(overrides)).printableStatus, want));
}

test('who holds the VM is told, and a start that is put off for it is none', () => {
  const held = (kind: 'snapshot' | 'restore') => vmStatusOf(aWorld({ lock: { kind, name: 'nightly' } }));
  const told = ({ snapshotInProgress, restoreInProgress, printableStatus }: VmStatus) =>
    [snapshotInProgress, restoreInProgress, printableStatus].join();
  assert.equal(told(held('snapshot')), 'nightly,,Stopped');
  assert.equal(told(held('restore')), ',nightly,Stopped');
  const vm = aVm({ status: { snapshotInProgress: 'nightly', restoreInProgress: 'nightly' } });
  assert.equal(told(vmStatusOf(aWorld({ vm }))), ',,Starting');
});

const MARKED = { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'vmi-uid' };
const running = aVmi('Running', { metadata: { uid: 'vmi-uid' } });
const marks: Record<string, { status: VmStatus; world?: Partial<VmWorld>; want: VmStatus }> = {
  'no mark stays none': { status: {}, world: { vmi: running }, want: {} },
  'one that is off stays so': {
    status: { machineTypeRestartRequired: false },
    world: { vmi: running },
    want: { machineTypeRestartRequired: false },
  },
  'one that is on stays while its instance is there': { status: MARKED, world: { vmi: running }, want: MARKED },
  'it goes when there is no instance': { status: MARKED, want: { machineTypeRestartRequired: false } },
  'it goes when the instance is another one': {
    status: MARKED,
    world: { vmi: aVmi('Running', { metadata: { uid: 'next' } }) },
    want: { machineTypeRestartRequired: false },
  },
  'it stays where only the cache does not show its instance': {
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

const sharers: Record<string, [UuidSharers | undefined, string | undefined]> = {
  'a uuid of its own is nothing to tell': [undefined, undefined],
  'another VM of the same uuid is named': [{ names: ['ns/x'], more: false }, 'VirtualMachine "x"'],
  'several are': [{ names: ['ns/x', 'ns/y', 'ns/z'], more: false }, 'VirtualMachine "x", "y", "z"'],
  'the rest are not': [{ names: ['ns/x', 'ns/y', 'ns/z'], more: true }, 'VirtualMachine "x", "y", "z" and others'],
  'nor are those of others': [
    { names: ['ns/x', 'other/x'], more: false },
    'VirtualMachine "x" and VirtualMachines in other namespaces',
  ],
};

for (const [name, [others, want]] of Object.entries(sharers)) {
  test(`DuplicateFirmwareUUID: ${name}`, () => {
    const mirrored = [{ type: 'DuplicateFirmwareUUID', status: 'True' as const, message: 'not for it to say' }];
    const vm = aVm({ status: { conditions: mirrored } });
    const vmi = aVmi('Running', { status: { conditions: mirrored } });
    const { conditions = [] } = vmStatusOf(aWorld({ vm, vmi, sharers: others }));
    const told = conditions.filter(({ type }) => type === 'DuplicateFirmwareUUID');
    assert.deepEqual(
      told.map(({ status, reason, message }) => [status, reason, message]),
      want === undefined
        ? []
        : [
            [
              'True',
              'DuplicateFirmwareUUID',
              `Firmware uuid ${UUID} is also that of ${want}; give one of them another one`,
            ],
          ],
    );
  });
}

test('a VM without an instance is not ready, since when it is not', () => {
  const before = '2026-01-01T10:00:00Z';
  const ready = (status: 'True' | 'False', lastTransitionTime: string) => ({
    type: 'Ready',
    status,
    lastTransitionTime,
  });
  const says = { reason: 'VMINotExists', message: 'VMI does not exist' };
  const seen = [ready('True', before), ready('False', before)].map((old) => {
    const vm = aVm({ runStrategy: 'Halted', status: { conditions: [old] } });
    return JSON.parse(JSON.stringify(vmStatusOf(aWorld({ vm })).conditions));
  });
  assert.deepEqual(seen, [[{ ...ready('False', NOW), ...says }], [{ ...ready('False', before), ...says }]]);
});

test('the conditions of the instance are its own, and what the VM says stands beside them', () => {
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

test('an instance that says nothing of it is not ready', () => {
  const { conditions } = vmStatusOf(aWorld({ vmi: aVmi('Scheduling') }));
  assert.equal(conditions?.[0]?.reason, 'VMIConditionMissing');
});

test('a start that waits for the devices of an import says so, and a VM that nobody starts does not', () => {
  const metadata = { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{"from":"OVF","devices":[]}' } };
  const told = (vm: ReturnType<typeof aVm>) => {
    const { conditions, printableStatus } = vmStatusOf(aWorld({ vm, identity: aRecord(vm) }));
    return [printableStatus, conditions?.map(({ type, reason }) => `${type} ${reason}`).join()];
  };
  assert.deepEqual(told(aVm({ metadata })), ['Starting', 'Ready ImportedDevicesPending']);
  assert.deepEqual(told(aVm({ metadata, runStrategy: 'Halted' })), ['Stopped', 'Ready VMINotExists']);
});

const NO_IMPORT = aVm({ metadata: { annotations: { [IMPORTED_DEVICES_ANNOTATION]: '{}' } } });
const troubles: Record<string, [RegExp | undefined, Partial<VmWorld>]> = {
  'an import that nobody can take over is a failure of a start': [
    /imported-devices from is missing; expected the devices of an import, or no such annotation$/,
    { vm: NO_IMPORT },
  ],
  'but not once its devices are on record': [
    undefined,
    { vm: NO_IMPORT, identity: { ...aRecord(NO_IMPORT), status: { devices: [] } } },
  ],
  'an instance of somebody else is a failure': [
    /VirtualMachineInstance "db" belongs to somebody else/,
    { stranger: aVmi('Running') },
  ],
  'the record of an earlier VM is a failure of a start': [
    /VirtualMachineIdentity "db" of an earlier VM is still there/,
    { identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
  ],
  'the record of an earlier VM does not bother a halted one': [
    undefined,
    { vm: aVm({ runStrategy: 'Halted' }), identity: aRecord(aVm({ metadata: { uid: 'earlier' } })) },
  ],
  'a VM under deletion has no such worries': [undefined, { vm: aVm({ metadata: DELETED }), stranger: aVmi('Running') }],
  'a strategy that is none is a failure': [
    /^unknown runstrategy: Sometimes$/,
    { vm: aVm({ spec: { runStrategy: 'Sometimes' } }) },
  ],
};

for (const [name, [want, overrides]] of Object.entries(troubles)) {
  test(name, () => {
    const { conditions, created } = vmStatusOf(aWorld(overrides));
    const told = conditions?.find(({ type }) => type === 'Failure')?.message;
    if (want === undefined) assert.equal(told, undefined);
    else assert.match(told ?? '', want);
    assert.equal(created, false);
  });
}

test('the strategy is remembered once there was an instance, and RerunOnFailure only with one', () => {
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

test('an instance that never ran is counted once, and the next one on top', () => {
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

test('an instance that ran, and a strategy that does not start by itself, forget the failures', () => {
  const status = { startFailure: failure };
  const vmi = aVmi('Failed', { status: RAN });
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status }), vmi })), undefined);
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status }), vmi: aVmi('Running') })), undefined);
  assert.equal(startFailureOf(aWorld({ vm: aVm({ status, runStrategy: 'Manual' }) })), undefined);
  assert.deepEqual(startFailureOf(aWorld({ vm: aVm({ status, runStrategy: 'Once' }) })), failure);
});

test('the backoff grows with the square, is spread by up to a half, and ends at 300 seconds', () => {
  for (const [failures, least] of [
    [1, 10],
    [2, 40],
    [3, 90],
    [4, 160],
  ] as const) {
    const times = Array.from({ length: 50 }, (_, n) => backoffSeconds(failures, `uid-${n}`));
    assert.ok(Math.min(...times) >= least && Math.max(...times) <= least * 1.5, `${failures}: ${times.join()}`);
    assert.ok(new Set(times).size > 2, 'spread');
  }
  assert.equal(backoffSeconds(6, 'uid'), 300);
  assert.equal(backoffSeconds(1000, 'uid'), 300);
});

test('why a start failed is told until one succeeds', () => {
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

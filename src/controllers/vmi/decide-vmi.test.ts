import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VMI_FINALIZER } from '#api/names.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { concludeVmi, decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { vmiPhaseOf } from '#controllers/vmi/phase.ts';
import { aClaim, aPod, aVmi, aWorld, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';
import type { Plan } from '#runtime/plan.ts';

const LATER = '2030-01-01T00:01:00Z';
const ready: Condition[] = [{ type: 'Ready', status: 'True' }];
const evicted: Condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
const aRunningPod = () => aPod({ phase: 'Running', nodeName: 'node-1', conditions: ready });
const inPhase = (phase: VmiPhase, more: VmiStatus = {}) => aVmi({ status: { phase, ...more } });
const onClaim = { volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }] };
const optionalSpec = {
  domain: {
    devices: {
      disks: [
        { name: 'off', plugged: false },
        { name: 'extra', optional: true },
      ],
    },
  },
  volumes: ['off', 'extra'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
};
const statusOf = (plan: Plan) => plan.status as VmiStatus;
const conditionOf = (plan: Plan, type: string) => findCondition(statusOf(plan).conditions, type);
const describeChanges = ({ changes }: Plan) => changes.map((change) => `${change.do} ${change.type.kind}`);

describe('the phase', () => {
  const cases: Record<string, { world: Partial<VmiWorld>; want: [VmiPhase, string?] }> = {
    'is Pending before there is a pod': { world: {}, want: ['Pending'] },
    'is Scheduling while the pod has no node': { world: { pod: aPod() }, want: ['Scheduling'] },
    'is Scheduled on a node': { world: { pod: aPod({ nodeName: 'a' }) }, want: ['Scheduled'] },
    'is Running when the pod is ready': { world: { pod: aRunningPod() }, want: ['Running'] },
    'does not go back': {
      world: { vmi: inPhase('Running'), pod: aPod({ phase: 'Running', nodeName: 'a' }) },
      want: ['Running'],
    },
    'is Succeeded when the guest shut down': { world: { pod: aPod({ phase: 'Succeeded' }) }, want: ['Succeeded'] },
    'is Failed with the reason of the pod': {
      world: { pod: aPod({ phase: 'Failed', reason: 'Killed' }) },
      want: ['Failed', 'Killed'],
    },
    'does not change after the end': {
      world: { vmi: inPhase('Succeeded'), pod: aRunningPod() },
      want: ['Succeeded'],
    },
    'keeps its reason after the end': {
      world: { vmi: inPhase('Failed', { reason: 'GuestCrashed' }) },
      want: ['Failed', 'GuestCrashed'],
    },
    'is Failed when the pod is gone': { world: { vmi: inPhase('Scheduling') }, want: ['Failed', 'PodGone'] },
    'is that of the last pod if it had ended': {
      world: { vmi: inPhase('Running'), lastPod: aPod({ phase: 'Succeeded' }) },
      want: ['Succeeded'],
    },
    'is Failed if the pod is evicted from an unreachable node': {
      world: {
        vmi: inPhase('Running'),
        isNodeReachable: false,
        pod: aPod({ phase: 'Running', nodeName: 'a', conditions: [evicted] }),
      },
      want: ['Failed', 'NodeLost'],
    },
    'stays while the pod is evicted from a reachable node': {
      world: { vmi: inPhase('Running'), pod: aPod({ phase: 'Running', nodeName: 'a', conditions: [evicted] }) },
      want: ['Running'],
    },
    'stays while the node is unreachable and the pod is not evicted': {
      world: { vmi: inPhase('Running'), isNodeReachable: false, pod: aPod({ phase: 'Running', nodeName: 'a' }) },
      want: ['Running'],
    },
    'is NodeLost if the pod was garbage-collected with its node': {
      world: { pod: aPod({ phase: 'Failed', conditions: [{ ...evicted, reason: 'DeletionByPodGC' }] }) },
      want: ['Failed', 'NodeLost'],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => {
      const { phase, reason } = vmiPhaseOf(aWorld(world));
      assert.deepEqual([phase, reason], [want[0], want[1]]);
    });
  }
});

describe('the changes', () => {
  const underDeletion = { meta: { deletionTimestamp: NOW, finalizers: ['other', VMI_FINALIZER] } };
  const cases: Record<string, { world: VmiWorld; want: string[] }> = {
    'create the pod': { world: aWorld(), want: ['create Pod'] },
    'do not create the pod while a claim is missing': {
      world: aWorld({ vmi: aVmi({ spec: onClaim }), claims: new Map() }),
      want: [],
    },
    'do not create the pod for a claim under deletion': {
      world: aWorld({
        vmi: aVmi({ spec: onClaim }),
        claims: new Map([['disk', { claim: aClaim('disk', { metadata: { deletionTimestamp: NOW } }) }]]),
      }),
      want: [],
    },
    'do not create the pod before the location of its data is known': {
      world: aWorld({
        vmi: aVmi({ spec: onClaim }),
        claims: new Map([
          ['disk', { claim: aClaim('disk', { spec: { volumeName: 'pv' }, status: { phase: 'Bound' } }) }],
        ]),
      }),
      want: [],
    },
    'create the pod without missing optional claims and claims that are only attached': {
      world: aWorld({ vmi: aVmi({ spec: optionalSpec }), claims: new Map() }),
      want: ['create Pod'],
    },
    'create the pod without waiting for the location of such claims': {
      world: aWorld({
        vmi: aVmi({ spec: optionalSpec }),
        claims: new Map([
          ['off', { claim: aClaim('off', { spec: { volumeName: 'pv' }, status: { phase: 'Bound' } }) }],
        ]),
      }),
      want: ['create Pod'],
    },
    'are none for a missing claim that is added to a running guest': {
      world: aWorld({
        vmi: aVmi({
          spec: onClaim,
          meta: { labels: { 'kubevirt.io/nodeName': 'node-1' } },
          status: { phase: 'Running' },
        }),
        pod: aRunningPod(),
        claims: new Map(),
      }),
      want: [],
    },
    'create the pod for a claim that waits for its first consumer': {
      world: aWorld({ vmi: aVmi({ spec: onClaim }) }),
      want: ['create Pod'],
    },
    'do not create a second pod': { world: aWorld({ vmi: inPhase('Scheduling') }), want: [] },
    'label the instance with its node': {
      world: aWorld({ pod: aRunningPod() }),
      want: ['patch VirtualMachineInstance'],
    },
    'label the instance once': {
      world: aWorld({ vmi: aVmi({ meta: { labels: { 'kubevirt.io/nodeName': 'node-1' } } }), pod: aRunningPod() }),
      want: [],
    },
    'delete the pod of an instance under deletion': {
      world: aWorld({ vmi: aVmi(underDeletion), pod: aRunningPod() }),
      want: ['delete Pod'],
    },
    'wait for the pod of an instance under deletion': {
      world: aWorld({ vmi: aVmi(underDeletion), pod: aPod({ phase: 'Running' }, { deletionTimestamp: NOW }) }),
      want: [],
    },
    'release the instance when its pod is gone': {
      world: aWorld({ vmi: aVmi(underDeletion) }),
      want: ['patch VirtualMachineInstance'],
    },
    'are none for an instance that has only other finalizers': {
      world: aWorld({ vmi: aVmi({ meta: { deletionTimestamp: NOW, finalizers: ['other'] } }) }),
      want: [],
    },
  };
  for (const [name, { world, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(describeChanges(decideVmi(world)), want));
  }
  it('remove only our own finalizer, at its position', () => {
    const [change] = decideVmi(aWorld({ vmi: aVmi(underDeletion) })).changes;
    assert.ok(change?.do === 'patch');
    assert.deepEqual(change.patch.body, [
      { op: 'test', path: '/metadata/finalizers/1', value: VMI_FINALIZER },
      { op: 'remove', path: '/metadata/finalizers/1' },
    ]);
  });
});

describe('the status', () => {
  it('is the same if nothing has changed', () => {
    const first = statusOf(decideVmi(aWorld({ pod: aRunningPod() })));
    const again = statusOf(decideVmi(aWorld({ vmi: aVmi({ status: first }), pod: aRunningPod(), now: LATER })));
    assert.deepEqual(again, first);
  });
  it('keeps the fields of the node agent', () => {
    const paused = { type: 'Paused', status: 'True' as const, lastTransitionTime: NOW };
    const status: VmiStatus = {
      phase: 'Running',
      machine: { type: 'pc-q35-7.2' },
      deviceHash: 'h',
      conditions: [paused],
    };
    const next = statusOf(decideVmi(aWorld({ vmi: aVmi({ status }), pod: aRunningPod() })));
    assert.deepEqual([next.machine, next.deviceHash, next.conditions?.[0]], [{ type: 'pc-q35-7.2' }, 'h', paused]);
  });
  it('is not ready while the guest is paused', () => {
    const paused = { type: 'Paused', status: 'True' as const, lastTransitionTime: NOW };
    const status: VmiStatus = { phase: 'Running', conditions: [paused] };
    const { reason, message } =
      conditionOf(decideVmi(aWorld({ vmi: aVmi({ status }), pod: aRunningPod() })), 'Ready') ?? {};
    assert.deepEqual([reason, message], ['GuestNotRunning', 'Guest VM is paused']);
  });
  it('records each phase with its time', () => {
    const first = statusOf(decideVmi(aWorld()));
    const next = statusOf(decideVmi(aWorld({ vmi: aVmi({ status: first }), pod: aRunningPod(), now: LATER })));
    assert.deepEqual(next.phaseTransitionTimestamps, [
      { phase: 'Pending', phaseTransitionTimestamp: NOW },
      { phase: 'Running', phaseTransitionTimestamp: LATER },
    ]);
  });
  it('drops Synchronized=False when the reason is gone', () => {
    const waiting = { reason: 'ErrImagePull', message: 'no such image' };
    const compute = { name: 'compute', image: 'x', imageID: '', ready: false, restartCount: 0, state: { waiting } };
    const plan = decideVmi(aWorld({ pod: aPod({ nodeName: 'a', containerStatuses: [compute] }) }));
    assert.equal(conditionOf(plan, 'Synchronized')?.reason, 'ErrImagePull');
    const next = decideVmi(aWorld({ vmi: aVmi({ status: statusOf(plan) }), pod: aRunningPod() }));
    assert.equal(conditionOf(next, 'Synchronized'), undefined);
  });
  it('does not report a container that is being created', () => {
    const state = { waiting: { reason: 'ContainerCreating' } };
    const compute = { name: 'compute', image: 'x', imageID: '', ready: false, restartCount: 0, state };
    const plan = decideVmi(aWorld({ pod: aPod({ nodeName: 'a', containerStatuses: [compute] }) }));
    assert.equal(conditionOf(plan, 'Synchronized'), undefined);
  });
  it('keeps the reason why no pod could be created until there is one', () => {
    const world = aWorld({ vmi: inPhase('Pending') });
    const [change] = decideVmi(world).changes;
    assert.ok(change !== undefined);
    const failed = concludeVmi(world, [{ change, error: new Error('quota') }]) as VmiStatus;
    const message = 'failed to create virtual machine pod: quota';
    assert.equal(findCondition(failed.conditions, 'Synchronized')?.message, message);
    const next = decideVmi(aWorld({ vmi: aVmi({ status: failed }) }));
    assert.equal(conditionOf(next, 'Synchronized')?.message, message);
    const withPod = decideVmi(aWorld({ vmi: aVmi({ status: failed }), pod: aPod() }));
    assert.equal(conditionOf(withPod, 'Synchronized'), undefined);
    assert.equal(concludeVmi(world, []), undefined);
  });
});

describe('Events', () => {
  const reasons = (world: VmiWorld) => decideVmi(world).events?.map(({ reason }) => reason);
  it('report the end once', () => {
    const pod = aPod({ phase: 'Failed', reason: 'Killed', message: 'it did not obey' });
    assert.deepEqual(reasons(aWorld({ vmi: inPhase('Running'), pod })), ['Killed']);
    assert.deepEqual(reasons(aWorld({ vmi: inPhase('Failed', { reason: 'Killed' }), pod })), []);
  });
  it('report a missing claim once', () => {
    const world = aWorld({ vmi: aVmi({ spec: onClaim }), claims: new Map() });
    const plan = decideVmi(world);
    assert.deepEqual(reasons(world), ['FailedPvcNotFound']);
    assert.deepEqual(reasons({ ...world, vmi: aVmi({ spec: onClaim, status: statusOf(plan) }) }), []);
  });
});

/** An instance while its guest moves to another node, and after it: what is told, and what is done. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration-state.ts';
import { NODE_NAME_LABEL, VMI_FINALIZER } from '#api/names.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { phaseOf } from '#controllers/vmi/phase.ts';
import { aPod, aVmi, aWorld, NOW, POD_NAME } from '#controllers/vmi/vmi-world.fixture.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

const LATER = '2030-01-01T00:01:00Z';
const MOVING: MigrationState = {
  migrationUid: 'm',
  sourceNode: 'node-1',
  sourcePod: POD_NAME,
  targetNode: 'node-2',
  targetPod: 'target',
};
const MOVED: MigrationState = { ...MOVING, completed: true };
const FAILED: MigrationState = { ...MOVED, failed: true };

const ready: Condition = { type: 'Ready', status: 'True' };
const awaits: Condition = { type: 'Ready', status: 'False', reason: 'MigrationTarget' };
const committed: Condition = { type: 'selfsame.io/MigrationCommitted', status: 'True', message: 'm' };
const evicted: Condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
const collected: Condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' };

const source = (status: NonNullable<Pod['status']> = {}) =>
  aPod({ phase: 'Running', nodeName: 'node-1', conditions: [ready], ...status }, { uid: 'source-uid' });
const target = (status: NonNullable<Pod['status']> = {}) =>
  aPod(
    { phase: 'Running', nodeName: 'node-2', conditions: [awaits], ...status },
    { name: 'target', uid: 'target-uid', labels: { 'kubevirt.io/migrationJobUID': 'm' } },
  );
const LEFT = source({ phase: 'Succeeded', reason: 'Migrated' });

const RUNNING: VmiStatus = {
  phase: 'Running',
  nodeName: 'node-1',
  phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: NOW }],
  conditions: [{ ...ready, lastTransitionTime: NOW }],
  guestStarted: { at: NOW },
  deviceHash: 'h',
  deviceRevision: 7,
};

function world(migrationState: MigrationState, more: Partial<VmiWorld> & { status?: VmiStatus } = {}): VmiWorld {
  const { status, ...rest } = more;
  const meta = { labels: { [NODE_NAME_LABEL]: 'node-1' } };
  return aWorld({ vmi: aVmi({ meta, status: { ...RUNNING, migrationState, ...status } }), now: LATER, ...rest });
}

describe('the phase of a guest that moves', () => {
  const both = { pod: source(), targetPod: target() };
  const cases: Record<string, { world: VmiWorld; want: [VmiPhase, string?] }> = {
    'is Running': { world: world(MOVING, both), want: ['Running'] },
    'stays when the source has ended because the guest has left': {
      world: world(MOVING, { ...both, pod: LEFT }),
      want: ['Running'],
    },
    'also when that pod is gone, and nobody has said so yet': {
      world: world(MOVING, { targetPod: target(), lastPod: LEFT }),
      want: ['Running'],
    },
    'stays when the source crashed after it had given the guest away': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', conditions: [committed] }) }),
      want: ['Running'],
    },
    'stays when only the target tells that it has the guest': {
      world: world(MOVING, {
        pod: source({ phase: 'Failed', reason: 'GuestCrashed' }),
        targetPod: target({ conditions: [committed] }),
      }),
      want: ['Running'],
    },
    'is Failed when the guest crashes at the source': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', reason: 'GuestCrashed' }) }),
      want: ['Failed', 'GuestCrashed'],
    },
    'is Succeeded when it shuts down there': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Succeeded' }) }),
      want: ['Succeeded'],
    },
    'is Failed when the source was taken away by force': {
      world: world(MOVING, { targetPod: target() }),
      want: ['Failed', 'PodGone'],
    },
    'is not that of a target that has failed': {
      world: world(MOVING, { ...both, targetPod: target({ phase: 'Failed', reason: 'MigrationAborted' }) }),
      want: ['Running'],
    },
    'stays when the node of the source is lost': {
      world: world(MOVING, { ...both, nodeAnswers: false, pod: source({ conditions: [evicted] }) }),
      want: ['Running'],
    },
    'also when its pod was collected with it': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', conditions: [collected] }) }),
      want: ['Running'],
    },
    'is that of the target when it has moved': { world: world(MOVED, { pod: target() }), want: ['Running'] },
    'is Failed when it crashes there': {
      world: world(MOVED, { pod: target({ phase: 'Failed', reason: 'GuestCrashed', conditions: [committed] }) }),
      want: ['Failed', 'GuestCrashed'],
    },
    'is Failed when that node is lost': {
      world: world(MOVED, { pod: target({ conditions: [committed, evicted] }), nodeAnswers: false }),
      want: ['Failed', 'NodeLost'],
    },
    'is Failed when the migration has failed, and the node is lost': {
      world: world(FAILED, { pod: source({ conditions: [evicted] }), nodeAnswers: false }),
      want: ['Failed', 'NodeLost'],
    },
  };
  for (const [name, one] of Object.entries(cases)) {
    it(name, () => {
      const { phase, reason } = phaseOf(one.world);
      assert.deepEqual([phase, reason], [one.want[0], one.want[1]]);
    });
  }
});

describe('the status of a guest that moves', () => {
  const told = (one: VmiWorld) => decideVmi(one).status as VmiStatus;
  const readyOf = ({ conditions }: VmiStatus) => findCondition(conditions, 'Ready');

  it('names both pods, and all else is as before', () => {
    const next = told(world(MOVING, { pod: source(), targetPod: target() }));
    assert.deepEqual(next.activePods, { 'source-uid': 'node-1', 'target-uid': 'node-2' });
    assert.deepEqual([next.nodeName, next.migrationState, readyOf(next)?.status], ['node-1', MOVING, 'True']);
    assert.deepEqual(next.phaseTransitionTimestamps, RUNNING.phaseTransitionTimestamps);
  });

  it('names no pod that has ended', () => {
    assert.deepEqual(told(world(MOVING, { pod: LEFT, targetPod: target() })).activePods, { 'target-uid': 'node-2' });
  });

  it('changes at once when it has moved; what the guest is stays', () => {
    const { status, changes } = decideVmi(world(MOVED, { pod: target(), otherPods: [LEFT] }));
    const next = status as VmiStatus;
    assert.deepEqual([next.nodeName, next.activePods], ['node-2', { 'target-uid': 'node-2' }]);
    assert.deepEqual(
      [next.guestStarted, next.deviceHash, next.deviceRevision, next.migrationState, next.phaseTransitionTimestamps],
      [RUNNING.guestStarted, 'h', 7, MOVED, RUNNING.phaseTransitionTimestamps],
    );
    const bodies = changes.map((change) => change.do === 'patch' && change.patch.body);
    assert.deepEqual(bodies, [{ metadata: { labels: { [NODE_NAME_LABEL]: 'node-2' } } }]);
  });

  it('stays at the source when it has failed', () => {
    const { status, changes } = decideVmi(world(FAILED, { pod: source(), otherPods: [target()] }));
    const next = status as VmiStatus;
    assert.deepEqual([next.nodeName, next.activePods, changes], ['node-1', { 'source-uid': 'node-1' }, []]);
  });

  const readiness: Record<string, { world: VmiWorld; want: string[] }> = {
    'it is ready while it is copied': { world: world(MOVING, { pod: source(), targetPod: target() }), want: ['True'] },
    'it is ready when it has left': { world: world(MOVING, { pod: LEFT, targetPod: target() }), want: ['True'] },
    'it is ready before the target has said so': { world: world(MOVED, { pod: target() }), want: ['True'] },
    'it is ready when the target has': {
      world: world(MOVED, { pod: target({ conditions: [ready] }) }),
      want: ['True'],
    },
    'it is not when the target says otherwise': {
      world: world(MOVED, { pod: target({ conditions: [{ ...ready, status: 'False', reason: 'Probe' }] }) }),
      want: ['False', 'Probe'],
    },
    'it is not when the source says otherwise': {
      world: world(MOVING, { pod: source({ conditions: [{ ...ready, status: 'False', reason: 'Probe' }] }) }),
      want: ['False', 'Probe'],
    },
    'one that was not ready does not become so': {
      world: world(MOVED, {
        pod: target(),
        status: { conditions: [{ ...ready, status: 'False', reason: 'Paused', lastTransitionTime: NOW }] },
      }),
      want: ['False', 'Paused'],
    },
    'it is not when the target is going': {
      world: world(MOVED, { pod: aPod({ conditions: [awaits] }, { name: 'target', deletionTimestamp: NOW }) }),
      want: ['False', 'PodTerminating'],
    },
  };
  for (const [name, one] of Object.entries(readiness)) {
    it(name, () => {
      const { status, reason } = readyOf(told(one.world)) ?? {};
      assert.deepEqual([status, reason], [one.want[0], one.want[1]]);
    });
  }

  const evacuations: Record<string, { world: VmiWorld; want: string | undefined }> = {
    'that it is to leave its node stays': {
      world: world(FAILED, { pod: source(), status: { evacuationNodeName: 'node-1' } }),
      want: 'node-1',
    },
    'until it has': {
      world: world(MOVED, { pod: target(), status: { evacuationNodeName: 'node-1' } }),
      want: undefined,
    },
    'or has ended': {
      world: world(FAILED, { pod: source({ phase: 'Failed' }), status: { evacuationNodeName: 'node-1' } }),
      want: undefined,
    },
  };
  for (const [name, one] of Object.entries(evacuations)) {
    it(name, () => assert.equal(told(one.world).evacuationNodeName, one.want));
  }

  it('is the same when nothing has changed', () => {
    for (const [state, pods] of [
      [MOVING, { pod: source(), targetPod: target() }],
      [MOVED, { pod: target() }],
    ] as const) {
      const status = told(world(state, pods));
      assert.deepEqual(told(world(state, { ...pods, status, now: '2030-01-01T00:02:00Z' })), status);
    }
  });
});

describe('deletion of an instance with several pods', () => {
  const going = (one: Partial<VmiWorld>) => {
    const meta = { deletionTimestamp: NOW, finalizers: [VMI_FINALIZER] };
    const vmi = aVmi({ meta, status: { ...RUNNING, migrationState: MOVING } });
    return decideVmi(aWorld({ vmi, ...one })).changes.map(({ do: deed, ...change }) => {
      const name = 'name' in change ? change.name.name : '';
      return `${deed} ${name}`;
    });
  };
  const leaving = (pod: Stored<Pod>) => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: NOW } });
  const left = aPod({}, { name: 'left', uid: 'left-uid' });
  const cases: Record<string, { world: Partial<VmiWorld>; want: string[] }> = {
    'takes all of them': {
      world: { pod: source(), targetPod: target(), otherPods: [left] },
      want: [`delete ${POD_NAME}`, 'delete target', 'delete left'],
    },
    'each once': { world: { pod: leaving(source()), targetPod: target() }, want: ['delete target'] },
    'waits for the last': { world: { otherPods: [leaving(left)] }, want: [] },
    'and lets the instance go then': { world: {}, want: ['patch db'] },
  };
  for (const [name, one] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(going(one.world), one.want));
  }
});

/** An instance during and after the migration of its guest: status and changes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration/migration-state.ts';
import { NODE_NAME_LABEL, VMI_FINALIZER } from '#api/names.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { vmiPhaseOf } from '#controllers/vmi/phase.ts';
import { aPod, aVmi, aWorld, NOW, POD_NAME } from '#controllers/vmi/testing/vmi-world.ts';
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

describe('the phase of a migrating guest', () => {
  const both = { pod: source(), targetPod: target() };
  const cases: Record<string, { world: VmiWorld; want: [VmiPhase, string?] }> = {
    'is Running': { world: world(MOVING, both), want: ['Running'] },
    'stays if the source has ended because the guest has left': {
      world: world(MOVING, { ...both, pod: LEFT }),
      want: ['Running'],
    },
    'stays if that pod is gone and no other condition shows it yet': {
      world: world(MOVING, { targetPod: target(), lastPod: LEFT }),
      want: ['Running'],
    },
    'stays if the source crashed after the migration was committed': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', conditions: [committed] }) }),
      want: ['Running'],
    },
    'stays if only the target shows that it has the guest': {
      world: world(MOVING, {
        pod: source({ phase: 'Failed', reason: 'GuestCrashed' }),
        targetPod: target({ conditions: [committed] }),
      }),
      want: ['Running'],
    },
    'is Failed if the guest crashes on the source': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', reason: 'GuestCrashed' }) }),
      want: ['Failed', 'GuestCrashed'],
    },
    'is Succeeded if the guest shuts down on the source': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Succeeded' }) }),
      want: ['Succeeded'],
    },
    'is Failed if the source pod was deleted by force': {
      world: world(MOVING, { targetPod: target() }),
      want: ['Failed', 'PodGone'],
    },
    'does not depend on a failed target': {
      world: world(MOVING, { ...both, targetPod: target({ phase: 'Failed', reason: 'MigrationAborted' }) }),
      want: ['Running'],
    },
    'stays if the node of the source is lost': {
      world: world(MOVING, { ...both, isNodeReachable: false, pod: source({ conditions: [evicted] }) }),
      want: ['Running'],
    },
    'stays if the source pod was garbage-collected with its node': {
      world: world(MOVING, { ...both, pod: source({ phase: 'Failed', conditions: [collected] }) }),
      want: ['Running'],
    },
    'is that of the target after the migration': { world: world(MOVED, { pod: target() }), want: ['Running'] },
    'is Failed if the guest crashes on the target': {
      world: world(MOVED, { pod: target({ phase: 'Failed', reason: 'GuestCrashed', conditions: [committed] }) }),
      want: ['Failed', 'GuestCrashed'],
    },
    'is Failed if the node of the target is lost afterwards': {
      world: world(MOVED, { pod: target({ conditions: [committed, evicted] }), isNodeReachable: false }),
      want: ['Failed', 'NodeLost'],
    },
    'is Failed if the migration has failed and the node of the source is lost': {
      world: world(FAILED, { pod: source({ conditions: [evicted] }), isNodeReachable: false }),
      want: ['Failed', 'NodeLost'],
    },
  };
  for (const [name, one] of Object.entries(cases)) {
    it(name, () => {
      const { phase, reason } = vmiPhaseOf(one.world);
      assert.deepEqual([phase, reason], [one.want[0], one.want[1]]);
    });
  }
});

describe('the status of a migrating guest', () => {
  const statusOf = (one: VmiWorld) => decideVmi(one).status as VmiStatus;
  const readyOf = ({ conditions }: VmiStatus) => findCondition(conditions, 'Ready');

  it('names both pods and is otherwise unchanged', () => {
    const next = statusOf(world(MOVING, { pod: source(), targetPod: target() }));
    assert.deepEqual(next.activePods, { 'source-uid': 'node-1', 'target-uid': 'node-2' });
    assert.deepEqual([next.nodeName, next.migrationState, readyOf(next)?.status], ['node-1', MOVING, 'True']);
    assert.deepEqual(next.phaseTransitionTimestamps, RUNNING.phaseTransitionTimestamps);
  });

  it('does not name a pod that has ended', () => {
    assert.deepEqual(statusOf(world(MOVING, { pod: LEFT, targetPod: target() })).activePods, {
      'target-uid': 'node-2',
    });
  });

  it('changes at once after the migration; what concerns the guest stays', () => {
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

  it('stays with the source after a failed migration', () => {
    const { status, changes } = decideVmi(world(FAILED, { pod: source(), otherPods: [target()] }));
    const next = status as VmiStatus;
    assert.deepEqual([next.nodeName, next.activePods, changes], ['node-1', { 'source-uid': 'node-1' }, []]);
  });

  const readiness: Record<string, { world: VmiWorld; want: string[] }> = {
    'is ready while the guest is copied': {
      world: world(MOVING, { pod: source(), targetPod: target() }),
      want: ['True'],
    },
    'is ready after the guest has left': { world: world(MOVING, { pod: LEFT, targetPod: target() }), want: ['True'] },
    'is ready before the target reports it': { world: world(MOVED, { pod: target() }), want: ['True'] },
    'is ready when the target reports it': {
      world: world(MOVED, { pod: target({ conditions: [ready] }) }),
      want: ['True'],
    },
    'is not ready if the target reports otherwise': {
      world: world(MOVED, { pod: target({ conditions: [{ ...ready, status: 'False', reason: 'Probe' }] }) }),
      want: ['False', 'Probe'],
    },
    'is not ready if the source reports otherwise': {
      world: world(MOVING, { pod: source({ conditions: [{ ...ready, status: 'False', reason: 'Probe' }] }) }),
      want: ['False', 'Probe'],
    },
    'does not become ready if it was not': {
      world: world(MOVED, {
        pod: target(),
        status: { conditions: [{ ...ready, status: 'False', reason: 'Paused', lastTransitionTime: NOW }] },
      }),
      want: ['False', 'Paused'],
    },
    'is not ready if the target is being deleted': {
      world: world(MOVED, { pod: aPod({ conditions: [awaits] }, { name: 'target', deletionTimestamp: NOW }) }),
      want: ['False', 'PodTerminating'],
    },
  };
  for (const [name, one] of Object.entries(readiness)) {
    it(name, () => {
      const { status, reason } = readyOf(statusOf(one.world)) ?? {};
      assert.deepEqual([status, reason], [one.want[0], one.want[1]]);
    });
  }

  const evacuations: Record<string, { world: VmiWorld; want: string | undefined }> = {
    'keeps the evacuation request': {
      world: world(FAILED, { pod: source(), status: { evacuationNodeName: 'node-1' } }),
      want: 'node-1',
    },
    'drops the evacuation request when the guest has left': {
      world: world(MOVED, { pod: target(), status: { evacuationNodeName: 'node-1' } }),
      want: undefined,
    },
    'drops the evacuation request when the guest has ended': {
      world: world(FAILED, { pod: source({ phase: 'Failed' }), status: { evacuationNodeName: 'node-1' } }),
      want: undefined,
    },
  };
  for (const [name, one] of Object.entries(evacuations)) {
    it(name, () => assert.equal(statusOf(one.world).evacuationNodeName, one.want));
  }

  it('is the same if nothing has changed', () => {
    for (const [state, pods] of [
      [MOVING, { pod: source(), targetPod: target() }],
      [MOVED, { pod: target() }],
    ] as const) {
      const status = statusOf(world(state, pods));
      assert.deepEqual(statusOf(world(state, { ...pods, status, now: '2030-01-01T00:02:00Z' })), status);
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
    'deletes all of them': {
      world: { pod: source(), targetPod: target(), otherPods: [left] },
      want: [`delete ${POD_NAME}`, 'delete target', 'delete left'],
    },
    'deletes each once': { world: { pod: leaving(source()), targetPod: target() }, want: ['delete target'] },
    'waits for the last': { world: { otherPods: [leaving(left)] }, want: [] },
    'releases the instance when all are gone': { world: {}, want: ['patch db'] },
  };
  for (const [name, one] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(going(one.world), one.want));
  }
});

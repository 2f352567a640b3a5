import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { ChangeListener } from '#client/informer.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { EndedPods, MAX_REMEMBERED } from '#controllers/vmi/ended-pods.ts';
import { aPod, aVmi, UID } from '#controllers/vmi/testing/vmi-world.ts';
import type { Pod, PodPhase } from '#kube/core-kinds.ts';

function watchPods() {
  const listeners = new Set<ChangeListener<Pod>>();
  const instanceListeners = new Set<ChangeListener<VirtualMachineInstance>>();
  const stopping = new AbortController();
  const subscribeTo =
    <T>(set: Set<T>) =>
    (listener: T) => {
      set.add(listener);
      return () => void set.delete(listener);
    };
  const uids = new Set([UID]);
  const ended = new EndedPods(
    { onChange: subscribeTo(listeners) },
    {
      vmis: { onChange: subscribeTo(instanceListeners) },
      hasInstance: (uid) => uids.has(uid),
      signal: stopping.signal,
    },
  );
  const deleteInstance = (): void => {
    uids.delete(UID);
    for (const listener of instanceListeners)
      listener('default/vm', { old: aVmi({ meta: { uid: UID } }), new: undefined });
  };
  const deletePod = (phase: PodPhase, name = 'pod', app = LAUNCHER_APP): void => {
    const old = aPod({ phase }, { name, labels: { [CREATED_BY_LABEL]: UID, [APP_LABEL]: app } });
    for (const listener of listeners) listener(`default/${name}`, { old, new: undefined });
  };
  const phaseOf = (name = 'pod', uid = UID) => ended.find(`default/${name}`, aVmi({ meta: { uid } }))?.status?.phase;
  return { ended, deletePod, deleteInstance, phaseOf, listeners, instanceListeners, stopping };
}

test('a launcher pod that had ended is remembered after its deletion, until it is forgotten', () => {
  const { ended, deletePod, phaseOf } = watchPods();
  deletePod('Succeeded');
  assert.equal(phaseOf(), 'Succeeded');
  ended.forget('default/pod');
  assert.equal(phaseOf(), undefined);
});

test('a pod that had not ended, or is not a launcher pod, is not remembered', () => {
  const { deletePod, phaseOf } = watchPods();
  deletePod('Running');
  deletePod('Failed', 'pod', 'other');
  assert.equal(phaseOf(), undefined);
});

test('pods of the same instance are remembered separately', () => {
  const { deletePod, phaseOf } = watchPods();
  deletePod('Succeeded', 'source');
  deletePod('Failed', 'target');
  assert.deepEqual(
    ['source', 'target', 'third'].map((name) => phaseOf(name)),
    ['Succeeded', 'Failed', undefined],
  );
  assert.equal(phaseOf('source', 'another'), undefined, 'the pod belonged to another instance');
});

test('the oldest pod is forgotten when there are too many', () => {
  const { deletePod, phaseOf } = watchPods();
  for (let i = 0; i <= MAX_REMEMBERED; i++) deletePod('Failed', `pod-${i}`);
  assert.equal(phaseOf('pod-0'), undefined);
  assert.ok(phaseOf('pod-1') && phaseOf(`pod-${MAX_REMEMBERED}`));
});

test('pods are forgotten with their instance, and not remembered after it', () => {
  const { deletePod, deleteInstance, phaseOf } = watchPods();
  deletePod('Succeeded', 'before');
  deleteInstance();
  deletePod('Succeeded', 'after');
  assert.deepEqual([phaseOf('before'), phaseOf('after')], [undefined, undefined]);
});

test('the listeners are removed when the controller has stopped', () => {
  const { listeners, instanceListeners, stopping } = watchPods();
  assert.deepEqual([listeners.size, instanceListeners.size], [1, 1]);
  stopping.abort();
  assert.deepEqual([listeners.size, instanceListeners.size], [0, 0]);
});

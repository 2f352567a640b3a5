import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { ChangeListener } from '#client/informer.ts';
import { EndedPods, MAX_REMEMBERED } from '#controllers/vmi/ended-pods.ts';
import { aPod, aVmi, UID } from '#controllers/vmi/vmi-world.fixture.ts';
import type { Pod, PodPhase } from '#kube/core-kinds.ts';

function remembering() {
  const listeners = new Set<ChangeListener<Pod>>();
  const stopping = new AbortController();
  const onChange = (listener: ChangeListener<Pod>) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const ended = new EndedPods({ onChange }, stopping);
  const goes = (phase: PodPhase, name = 'pod', app = LAUNCHER_APP): void => {
    const old = aPod({ phase }, { name, labels: { [CREATED_BY_LABEL]: UID, [APP_LABEL]: app } });
    for (const listener of listeners) listener(`default/${name}`, { old, new: undefined });
  };
  const phaseOf = (name = 'pod', uid = UID) => ended.of(`default/${name}`, aVmi({ meta: { uid } }))?.status?.phase;
  return { ended, goes, phaseOf, listeners, stopping };
}

test('a launcher pod that had ended is remembered when it is gone, until it is forgotten', () => {
  const { ended, goes, phaseOf } = remembering();
  goes('Succeeded');
  assert.equal(phaseOf(), 'Succeeded');
  ended.forget('default/pod');
  assert.equal(phaseOf(), undefined);
});

test('a pod that still ran, or is of somebody else, is not', () => {
  const { goes, phaseOf } = remembering();
  goes('Running');
  goes('Failed', 'pod', 'other');
  assert.equal(phaseOf(), undefined);
});

test('another pod of the same instance is another one', () => {
  const { goes, phaseOf } = remembering();
  goes('Succeeded', 'source');
  goes('Failed', 'target');
  assert.deepEqual(
    ['source', 'target', 'third'].map((name) => phaseOf(name)),
    ['Succeeded', 'Failed', undefined],
  );
  assert.equal(phaseOf('source', 'another'), undefined, 'it was of another instance');
});

test('of too many the oldest is forgotten', () => {
  const { goes, phaseOf } = remembering();
  for (let i = 0; i <= MAX_REMEMBERED; i++) goes('Failed', `pod-${i}`);
  assert.equal(phaseOf('pod-0'), undefined);
  assert.ok(phaseOf('pod-1') && phaseOf(`pod-${MAX_REMEMBERED}`));
});

test('nobody listens when the controller has stopped', () => {
  const { listeners, stopping } = remembering();
  assert.equal(listeners.size, 1);
  stopping.abort();
  assert.equal(listeners.size, 0);
});

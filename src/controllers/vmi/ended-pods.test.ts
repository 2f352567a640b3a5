import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APP_LABEL, CREATED_BY_LABEL, LAUNCHER_APP } from '#api/names.ts';
import type { ChangeListener } from '#client/informer.ts';
import { EndedPods, MAX_REMEMBERED } from '#controllers/vmi/ended-pods.ts';
import { aPod, UID } from '#controllers/vmi/vmi-world.fixture.ts';
import type { Pod, PodPhase } from '#kube/core-kinds.ts';

function remembering() {
  const listeners = new Set<ChangeListener<Pod>>();
  const stopping = new AbortController();
  const onChange = (listener: ChangeListener<Pod>) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const ended = new EndedPods({ onChange }, stopping);
  const goes = (phase: PodPhase, uid = UID, app = LAUNCHER_APP): void => {
    const old = aPod({ phase }, { labels: { [CREATED_BY_LABEL]: uid, [APP_LABEL]: app } });
    for (const listener of listeners) listener('default/pod', { old, new: undefined });
  };
  return { ended, goes, listeners, stopping };
}

test('a launcher pod that had ended is remembered when it is gone, until it is forgotten', () => {
  const { ended, goes } = remembering();
  goes('Succeeded');
  assert.equal(ended.of(UID)?.status?.phase, 'Succeeded');
  ended.forget(UID);
  assert.equal(ended.of(UID), undefined);
});

test('a pod that still ran, or is of somebody else, is not', () => {
  const { ended, goes } = remembering();
  goes('Running');
  goes('Failed', UID, 'other');
  assert.equal(ended.of(UID), undefined);
});

test('of too many the oldest is forgotten', () => {
  const { ended, goes } = remembering();
  for (let i = 0; i <= MAX_REMEMBERED; i++) goes('Failed', `uid-${i}`);
  assert.equal(ended.of('uid-0'), undefined);
  assert.ok(ended.of('uid-1') && ended.of(`uid-${MAX_REMEMBERED}`));
});

test('nobody listens when the controller has stopped', () => {
  const { listeners, stopping } = remembering();
  assert.equal(listeners.size, 1);
  stopping.abort();
  assert.equal(listeners.size, 0);
});

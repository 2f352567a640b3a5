import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVmi } from '#node/definition/testing/a-vmi.ts';
import { tellWatchdogs } from '#node/domains/watchdog-news.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';

test('each time that a watchdog fires is told once, in what it does', () => {
  const vmi = aVmi();
  const told: string[] = [];
  let watchdog: Domain['watchdog'];
  let look = (_id: string) => {};
  const base = { id: 'a', name: 'default/vm', machine: 'q35', startedAtMs: 0, deviceEvents: 0 };
  tellWatchdogs({
    hypervisor: {
      get: () => ({ ...base, current: { state: 'running' }, ...(watchdog && { watchdog }) }),
      onChange(listener) {
        look = listener;
        return () => undefined;
      },
    },
    vmiOf: () => vmi,
    events: { record: (_object, { message }) => void told.push(message) },
  });
  look('a');
  for (const next of [
    { times: 1, action: 'reset' },
    { times: 2, action: 'reset' },
    { times: 3, action: 'inject-nmi' },
  ]) {
    watchdog = next;
    look('a');
    look('a');
  }
  assert.deepEqual(told, [
    'The guest did not feed its watchdog in time, and is reset.',
    'The guest did not feed its watchdog in time, and is reset.',
    'The guest did not feed its watchdog in time, and the action is inject-nmi.',
  ]);
});

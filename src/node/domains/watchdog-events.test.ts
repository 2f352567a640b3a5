import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVmi } from '#node/definition/testing/a-vmi.ts';
import { recordWatchdogEvents } from '#node/domains/watchdog-events.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

test('records one Event with the action each time a watchdog fires', () => {
  const vmi = aVmi();
  const messages: string[] = [];
  let watchdog: DomainInfo['watchdog'];
  let notify = (_id: string) => {};
  const base = { id: 'a', name: 'default/vm', machine: 'q35', startedAtMs: 0, deviceEvents: 0 };
  recordWatchdogEvents({
    hypervisor: {
      get: () => ({ ...base, current: { state: 'running' }, ...(watchdog && { watchdog }) }),
      onChange(listener) {
        notify = listener;
        return () => undefined;
      },
    },
    vmiOf: () => vmi,
    events: { record: (_object, { message }) => void messages.push(message) },
  });
  notify('a');
  for (const next of [
    { times: 1, action: 'reset' },
    { times: 2, action: 'reset' },
    { times: 3, action: 'inject-nmi' },
  ]) {
    watchdog = next;
    notify('a');
    notify('a');
  }
  assert.deepEqual(messages, [
    'The guest did not reset its watchdog in time and is restarted.',
    'The guest did not reset its watchdog in time and is restarted.',
    'The guest did not reset its watchdog in time and the action is inject-nmi.',
  ]);
});

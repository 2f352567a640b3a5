import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Probe } from '#api/domain/probe.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { aVmi } from '#node/definition/testing/a-vmi.ts';
import { HypervisorError, type DomainInfo } from '#node/hypervisor/hypervisor.ts';
import { ProbeRunner } from '#node/probes/probe-runner.ts';

/** A guest whose state and port the test can change. */
function scene(livenessProbe: Probe) {
  const clock = new FakeClock();
  const vmi = aVmi({}, { livenessProbe });
  const guest: { domain: DomainInfo; isOpen: boolean; isUnknown: boolean; probed: number } = {
    domain: {
      ...{ id: vmi.metadata.uid, name: 'default/vm', machine: 'q35', startedAtMs: clock.now(), deviceEvents: 0 },
      current: { state: 'running' },
    },
    ...{ isOpen: true, isUnknown: false, probed: 0 },
  };
  const events: string[] = [];
  const runner = new ProbeRunner({
    hypervisor: {
      get: () => guest.domain,
      onChange: () => () => undefined,
      askAgent: async () => ({}),
    },
    ports: {
      async openPort() {
        guest.probed++;
        if (guest.isOpen) return new PassThrough();
        if (guest.isUnknown) throw new HypervisorError('its address is unknown', { permanent: true });
        throw new HypervisorError('the guest refused the connection');
      },
    },
    events: { record: (_object, { reason }) => void events.push(reason) },
    ...{ clock, log: silentLog },
  });
  return { runner, vmi, guest, events, clock, health: () => runner.healthOf(vmi) };
}

const PROBE: Probe = { tcpSocket: { port: 22 }, periodSeconds: 1 };

test('a guest that refuses three times in a row fails its liveness probe', async () => {
  const { health, guest, clock, events, runner } = scene(PROBE);
  assert.deepEqual(health(), {});
  await clock.advance(5000);
  assert.deepEqual(health(), {});
  guest.isOpen = false;
  await clock.advance(3000);
  assert.deepEqual(health(), { livenessFailure: 'the guest refused the connection' });
  assert.deepEqual(events, ['Unhealthy', 'Unhealthy', 'Unhealthy', 'LivenessProbeFailed']);
  runner.stop();
  assert.equal(clock.pendingTimers, 0);
});

const quiet: Record<string, Partial<DomainInfo>> = {
  'a paused guest is not probed': { current: { state: 'paused' } },
  'a guest with frozen file systems is not probed': { frozenUntilMs: 1 },
};
for (const [sentence, change] of Object.entries(quiet)) {
  test(sentence, async () => {
    const { health, guest, clock, runner } = scene(PROBE);
    health();
    await clock.advance(2000);
    Object.assign(guest, { domain: { ...guest.domain, ...change }, isOpen: false, probed: 0 });
    await clock.advance(60_000);
    assert.deepEqual([guest.probed, health()], [0, {}]);
    runner.stop();
  });
}

test('a guest with an unknown address is not stopped, and one Event is recorded', async () => {
  const { health, guest, clock, events, runner } = scene(PROBE);
  health();
  Object.assign(guest, { isOpen: false, isUnknown: true });
  await clock.advance(60_000);
  assert.deepEqual([health(), events], [{}, ['Unhealthy']]);
  guest.isUnknown = false;
  await clock.advance(3000);
  assert.deepEqual(health(), { livenessFailure: 'the guest refused the connection' });
  runner.stop();
});

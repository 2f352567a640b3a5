import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Probe } from '#api/domain/probe.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { silentLog } from '#lib/log.ts';
import { aVmi } from '#node/definition/testing/a-vmi.ts';
import { HypervisorError, type Domain } from '#node/hypervisor/hypervisor.ts';
import { ProbeKeeper } from '#node/probes/probe-keeper.ts';

/** A guest in a state of the test's choice, whose port is open or not. */
function scene(livenessProbe: Probe) {
  const clock = new FakeClock();
  const vmi = aVmi({}, { livenessProbe });
  const guest: { domain: Domain; isOpen: boolean; isUnknown: boolean; asked: number } = {
    domain: {
      ...{ id: vmi.metadata.uid, name: 'default/vm', machine: 'q35', startedAtMs: clock.now(), deviceEvents: 0 },
      current: { state: 'running' },
    },
    ...{ isOpen: true, isUnknown: false, asked: 0 },
  };
  const events: string[] = [];
  const keeper = new ProbeKeeper({
    hypervisor: {
      get: () => guest.domain,
      onChange: () => () => undefined,
      askAgent: async () => ({}),
    },
    ports: {
      async openPort() {
        guest.asked++;
        if (guest.isOpen) return new PassThrough();
        if (guest.isUnknown) throw new HypervisorError('nobody tells its address', { permanent: true });
        throw new HypervisorError('the guest refused the connection');
      },
    },
    events: { record: (_object, { reason }) => void events.push(reason) },
    ...{ clock, log: silentLog },
  });
  return { keeper, vmi, guest, events, clock, health: () => keeper.of(vmi) };
}

const PROBE: Probe = { tcpSocket: { port: 22 }, periodSeconds: 1 };

test('a guest that refuses three times in a row is not well', async () => {
  const { health, guest, clock, events, keeper } = scene(PROBE);
  assert.deepEqual(health(), {});
  await clock.advance(5000);
  assert.deepEqual(health(), {});
  guest.isOpen = false;
  await clock.advance(3000);
  assert.deepEqual(health(), { dead: 'the guest refused the connection' });
  assert.deepEqual(events, ['Unhealthy', 'Unhealthy', 'Unhealthy', 'LivenessProbeFailed']);
  keeper.stop();
  assert.equal(clock.pendingTimers, 0);
});

const quiet: Record<string, Partial<Domain>> = {
  'a paused guest is not asked': { current: { state: 'paused' } },
  'nor one whose file systems are frozen, whatever its probe is': { frozenUntilMs: 1 },
};
for (const [name, change] of Object.entries(quiet)) {
  test(name, async () => {
    const { health, guest, clock, keeper } = scene(PROBE);
    health();
    await clock.advance(2000);
    Object.assign(guest, { domain: { ...guest.domain, ...change }, isOpen: false, asked: 0 });
    await clock.advance(60_000);
    assert.deepEqual([guest.asked, health()], [0, {}]);
    keeper.stop();
  });
}

test('a guest whose address nobody knows is not stopped for it, and it is told once', async () => {
  const { health, guest, clock, events, keeper } = scene(PROBE);
  health();
  Object.assign(guest, { isOpen: false, isUnknown: true });
  await clock.advance(60_000);
  assert.deepEqual([health(), events], [{}, ['Unhealthy']]);
  guest.isUnknown = false;
  await clock.advance(3000);
  assert.deepEqual(health(), { dead: 'the guest refused the connection' });
  keeper.stop();
});

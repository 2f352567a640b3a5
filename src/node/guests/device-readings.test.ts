import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deviceHash } from '#api/devices/device-hash.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { DeviceReadings } from '#node/guests/device-readings.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

const DISK: LearnedDevice = { id: 'disk-a', type: 'disk', device: 'disk' };
const NIC: LearnedDevice = { id: 'nic-a', type: 'interface', device: 'virtio' };

/** A guest whose devices a test can change. */
function scene() {
  const clock = new FakeClock();
  const guest = {
    domain: {
      id: 'u',
      name: 'ns/db',
      machine: 'q',
      startedAtMs: 1,
      current: { state: 'running' },
      deviceEvents: 0,
    } as DomainInfo,
    devices: [DISK],
    failure: undefined as Error | undefined,
    /** Called during each reading. */
    meanwhile: () => {},
  };
  const hypervisor = {
    get: () => guest.domain,
    async learn() {
      if (guest.failure !== undefined) throw guest.failure;
      const { devices } = guest;
      guest.meanwhile();
      return devices;
    },
  };
  const event = (devices: LearnedDevice[]) => {
    guest.devices = devices;
    guest.domain = { ...guest.domain, deviceEvents: guest.domain.deviceEvents + 1 };
  };
  const readings = new DeviceReadings({ hypervisor, clock });
  return { clock, guest, event, readings, hypervisor, due: () => readings.dueAtMs(guest.domain) };
}

test('a domain is read once', async () => {
  const { readings, clock, due } = scene();
  assert.equal(due(), 0);
  await readings.read('u');
  assert.equal(due(), undefined);
  assert.deepEqual(readings.get('u'), { devices: [DISK], hash: deviceHash([DISK]), revision: clock.now() });
});

const reasons: Record<string, { change: Partial<DomainInfo>; due: number | undefined }> = {
  'after a device event': { change: { deviceEvents: 1 }, due: 0 },
  'after a new start': { change: { startedAtMs: 2 }, due: 0 },
  'after a pause': { change: { current: { state: 'paused' } }, due: undefined },
  'after the end of the guest': {
    change: { current: { state: 'ended', how: 'shutdown' }, deviceEvents: 1 },
    due: undefined,
  },
};
for (const [sentence, { change, due }] of Object.entries(reasons)) {
  test(`${sentence}, a domain is ${due === undefined ? 'not ' : ''}read again`, async () => {
    const { readings, guest } = scene();
    await readings.read('u');
    assert.equal(readings.dueAtMs({ ...guest.domain, ...change }), due);
  });
}

test('a change during a reading makes another reading due', async () => {
  const { readings, guest, event, due } = scene();
  guest.meanwhile = () => event([DISK, NIC]);
  await readings.read('u');
  assert.deepEqual(readings.get('u')?.devices, [DISK]);
  assert.equal(due(), 0);
});

test('a failed reading is repeated with backoff, and the last one stays valid', async () => {
  const { readings, clock, guest, event, due } = scene();
  await readings.read('u');
  const before = readings.get('u');
  event([NIC]);
  guest.failure = new Error('no answer');
  const delays = [];
  for (let tries = 0; tries < 9; tries++) {
    await assert.rejects(readings.read('u'), /no answer/);
    delays.push(due()! - clock.elapsed());
  }
  assert.deepEqual([delays[0], delays[1], delays.at(-1)], [100, 200, 10_000]);
  assert.equal(readings.get('u'), before);
  guest.failure = undefined;
  await readings.read('u');
  assert.deepEqual([due(), readings.get('u')?.devices], [undefined, [NIC]]);
});

test('the revision increases only with changes, also after the clock was set back', async () => {
  const { readings, clock, event } = scene();
  await readings.read('u');
  const first = readings.get('u')!.revision;
  clock.setWallClockBy(-3_600_000);
  event([DISK]);
  await readings.read('u');
  assert.equal(readings.get('u')!.revision, first);
  event([NIC]);
  await readings.read('u');
  assert.equal(readings.get('u')!.revision, first + 1);
});

test('the next agent continues from the reported hash and revision', async () => {
  const { hypervisor, clock } = scene();
  const reported = { hash: deviceHash([DISK]), revision: clock.now() + 5000 };
  const same = new DeviceReadings({ hypervisor, clock });
  await same.read('u', reported);
  assert.equal(same.get('u')?.revision, reported.revision);
  const other = new DeviceReadings({ hypervisor, clock });
  await other.read('u', { ...reported, hash: 'another' });
  assert.equal(other.get('u')?.revision, reported.revision + 1);
});

test('a forgotten domain is read again', async () => {
  const { readings, due } = scene();
  await readings.read('u');
  readings.forget('u');
  assert.deepEqual([readings.get('u'), due()], [undefined, 0]);
});

test('events without a change are read with backoff, until the devices change', async () => {
  const { readings, clock, event, due } = scene();
  await readings.read('u');
  event([DISK]);
  assert.equal(due(), 0);
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    await readings.read('u');
    event([DISK]);
    waits.push(due()! - clock.elapsed());
  }
  assert.deepEqual([waits[0], waits.at(-1)], [100, 2000]);
  await clock.advance(2000);
  assert.ok(due()! <= clock.elapsed());

  event([DISK, NIC]);
  await readings.read('u');
  event([DISK]);
  assert.equal(due(), 0, 'a changed device is read at once');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deviceChanges, formerOf, type Former } from '#api/device-changes.ts';
import type { LearnedDevice } from '#api/learned-device.ts';

const ADDRESS = { type: 'pci', bus: '0x02', slot: '0x00' };
const disk: LearnedDevice = { id: 'disk-a', type: 'disk', device: 'disk', name: 'a', address: ADDRESS };
const bare: LearnedDevice = { id: 'disk-a', type: 'disk', device: 'disk', name: 'a' };
const out = { ...disk, plugged: false };

const changes: Record<string, [LearnedDevice[], LearnedDevice[], words: string, Former | undefined]> = {
  'a device that is gone': [
    [disk],
    [],
    'disk-a is gone from bus=0x02,slot=0x00,type=pci',
    { id: 'disk-a', address: ADDRESS, plugged: true },
  ],
  'one without an address that is gone': [
    [bare],
    [],
    'disk-a is gone from no address',
    { id: 'disk-a', plugged: true },
  ],
  'one that is unplugged and keeps its place': [
    [disk],
    [out],
    'disk-a is unplugged; bus=0x02,slot=0x00,type=pci is kept',
    { id: 'disk-a', address: ADDRESS, plugged: true },
  ],
  'one that is unplugged and releases it': [
    [disk],
    [{ ...bare, plugged: false }],
    'disk-a is unplugged; bus=0x02,slot=0x00,type=pci is released',
    { id: 'disk-a', address: ADDRESS, plugged: true },
  ],
  'one that is plugged in again': [
    [out],
    [disk],
    'disk-a is plugged in at bus=0x02,slot=0x00,type=pci',
    { id: 'disk-a', plugged: false },
  ],
  'a new one': [[], [disk], 'disk-a is new at bus=0x02,slot=0x00,type=pci', undefined],
};

for (const [what, [before, after, words, former]] of Object.entries(changes)) {
  test(`${what} is told so, and what it was can be read again`, () => {
    assert.deepEqual(deviceChanges(before, after), [words]);
    assert.deepEqual(formerOf(words), former);
  });
}

test('other words tell of no device', () => {
  assert.equal(formerOf('machine type changed from pc-q35-6.2 to pc-q35-7.2'), undefined);
  assert.equal(formerOf('restored from snapshot gone'), undefined);
});

/** The layout must never change: a change that breaks one of these tests would move devices of existing guests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Q35_LAYOUT } from '#node/definition/addresses/layout-q35.ts';
import { behindPort, countPorts, MAX_PORTS, portOf, rootPortAddress } from '#api/devices/root-ports.ts';
import { driveAddress } from '#node/hardware/drive-address.ts';
import type { Fixture } from '#node/definition/addresses/layout.ts';
import { parsePciAddress, pciAddressToMap, formatPciAddress } from '#api/devices/pci-address.ts';

const PCI = Q35_LAYOUT.pci;

test('fixtures keep their fixed addresses', () => {
  const want: Record<Exclude<Fixture, 'spare'>, string> = {
    video: '0000:00:01.0',
    scsi: '0000:00:06.0',
    'virtio-serial': '0000:00:07.0',
    balloon: '0000:00:08.0',
    rng: '0000:00:09.0',
    usb: '0000:00:0a.0',
    watchdog: '0000:00:0b.0',
    sound: '0000:00:1b.0',
  };
  for (const [fixture, place] of Object.entries(want)) {
    const [first = -1, second = -1] = PCI.placesFor(fixture as Fixture);
    assert.deepEqual([PCI.print(first), PCI.print(second)], [place, '0000:00:0c.0'], fixture);
  }
});

test('devices without a reserved place come after those that have one', () => {
  const places = PCI.placesFor('spare').map((place) => PCI.print(place));
  assert.deepEqual([places[0], places.at(-1), places.length], ['0000:00:0c.0', '0000:00:1e.0', 18]);
});

test('every place maps to an address and back', () => {
  const places = [...PCI.defaultPlaces, ...PCI.placesFor('video'), ...PCI.placesFor('sound')];
  for (const place of places) assert.equal(PCI.placeOf(PCI.addressOf(place)), place);
});

const noPlaces: Record<string, string> = {
  'the host bridge': '0000:00:00.0',
  'a root port': '0000:00:02.0',
  'the chipset': '0000:00:1f.0',
  'a second function': '0000:00:06.1',
  'another slot behind a port': '0000:01:01.0',
  'a bus past the ports': '0000:21:00.0',
};
for (const [name, text] of Object.entries(noPlaces)) {
  test(`has no place for an address at ${name}`, () => {
    assert.equal(PCI.placeOf(pciAddressToMap(parsePciAddress(text)!)), undefined);
  });
}

test('disks and interfaces are behind ports only', () => {
  assert.equal(PCI.defaultPlaces.length, MAX_PORTS);
  assert.ok(PCI.defaultPlaces.every((place) => PCI.isPluggable(place)));
  assert.ok(!PCI.placesFor('scsi').some((place) => PCI.isPluggable(place)));
});

test('there are six units on SATA and 256 on SCSI', () => {
  const { sata, scsi, ide, fdc } = Q35_LAYOUT.drives;
  assert.deepEqual(
    [sata?.placesFor('disk').length, scsi?.placesFor('disk').length, ide, fdc],
    [6, 256, undefined, undefined],
  );
  assert.equal(sata?.placeOf(sata.addressOf(5)), 5);
  assert.equal(sata?.placeOf(driveAddress(6)), undefined);
});

test('ports fill slots 02 to 05, and the device behind port N is on bus N + 1', () => {
  const ports = [0, 7, 8, 31];
  assert.deepEqual(
    ports.map((port) => formatPciAddress(rootPortAddress(port))),
    ['0000:00:02.0', '0000:00:02.7', '0000:00:03.0', '0000:00:05.7'],
  );
  assert.deepEqual(
    ports.map((port) => formatPciAddress(behindPort(port))),
    ['0000:01:00.0', '0000:08:00.0', '0000:09:00.0', '0000:20:00.0'],
  );
});

test('returns the port of an address', () => {
  for (let port = 0; port < MAX_PORTS; port++) assert.equal(portOf(behindPort(port)), port);
  for (const place of [
    { bus: 0 },
    { bus: MAX_PORTS + 1 },
    { bus: 1, slot: 1 },
    { bus: 1, function: 1 },
    { bus: 1, domain: 1 },
  ]) {
    assert.equal(portOf({ domain: 0, slot: 0, function: 0, ...place }), undefined);
  }
});

const upTo = (count: number) => Array.from({ length: count }, (_, port) => port);
const counts: Record<string, { taken: readonly number[]; before?: number; want: number }> = {
  'a guest without devices has one slot of ports': { taken: [], want: 8 },
  'four devices and four spares fit into one slot': { taken: upTo(4), want: 8 },
  'a fifth device needs another slot': { taken: upTo(5), want: 16 },
  'the highest used port determines the count': { taken: [17], want: 24 },
  'no port vanishes': { taken: [0], before: 24, want: 24 },
  'a guest that has used its spares keeps its ports': { taken: upTo(8), before: 8, want: 8 },
  'a device without a port brings a slot of ports': { taken: upTo(9), before: 8, want: 16 },
  'new ports include spares': { taken: upTo(13), before: 8, want: 24 },
  'there are no spares beyond the limit': { taken: upTo(31), want: 32 },
  'all ports can be used': { taken: upTo(32), want: 32 },
};
for (const [name, { taken, before = 0, want }] of Object.entries(counts)) {
  test(name, () => assert.equal(countPorts(new Set(taken), before), want));
}

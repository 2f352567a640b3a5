/** The layout must never change: a change that breaks one of these tests would move devices of existing guests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { driveAddress } from '#node/hardware/drive-address.ts';
import { I440FX_LAYOUT } from '#node/definition/addresses/layout-i440fx.ts';
import { parsePciAddress, pciAddressToMap } from '#api/devices/pci-address.ts';

const { pci, drives } = I440FX_LAYOUT;

test('video is in slot 02, everything else in slots 03 to 1f', () => {
  const ends = (places: readonly number[]) => [pci.print(places[0] ?? -1), pci.print(places.at(-1) ?? -1)];
  assert.deepEqual(ends(pci.placesFor('video')), ['0000:00:02.0', '0000:00:1f.0']);
  for (const fixture of ['scsi', 'balloon', 'rng', 'virtio-serial', 'usb', 'watchdog', 'sound'] as const) {
    assert.deepEqual(ends(pci.placesFor(fixture)), ['0000:00:03.0', '0000:00:1f.0'], fixture);
  }
  assert.deepEqual(ends(pci.defaultPlaces), ['0000:00:03.0', '0000:00:1f.0']);
  assert.equal(pci.defaultPlaces.length, 29);
});

test('slots 02 and higher map to an address and back, and all are pluggable', () => {
  for (const place of pci.placesFor('video')) {
    assert.equal(pci.placeOf(pci.addressOf(place)), place);
    assert.ok(pci.isPluggable(place));
  }
});

const noPlaces: Record<string, string> = {
  'the host bridge': '0000:00:00.0',
  'the IDE controller': '0000:00:01.1',
  'a second function': '0000:00:05.1',
  'a bus behind a bridge': '0000:01:01.0',
  'another domain': '0001:00:05.0',
};
for (const [name, text] of Object.entries(noPlaces)) {
  test(`has no place for an address at ${name}`, () => {
    assert.equal(pci.placeOf(pciAddressToMap(parsePciAddress(text)!)), undefined);
  });
}

test('IDE has two buses of two units: CD-ROM drives prefer the third unit, disks the others', () => {
  const { ide } = drives;
  const drive = (bus: string, unit: string) => ({ type: 'drive', controller: '0', bus, target: '0', unit });
  const addresses = [drive('0', '0'), drive('0', '1'), drive('1', '0'), drive('1', '1')];
  assert.deepEqual(
    [0, 1, 2, 3].map((unit) => ide?.addressOf(unit)),
    addresses,
  );
  assert.deepEqual(
    addresses.map((address) => ide?.placeOf(address)),
    [0, 1, 2, 3],
  );
  assert.equal(ide?.placeOf(drive('2', '0')), undefined);
  assert.equal(ide?.placeOf(drive('0', '2')), undefined);
  assert.deepEqual(ide?.placesFor('cdrom'), [2, 3, 1, 0]);
  assert.deepEqual(ide?.placesFor('disk'), [0, 1, 3, 2]);
});

test('there are two floppy drives, 256 units on SCSI, and no SATA', () => {
  assert.deepEqual(drives.fdc?.placesFor('floppy').map(drives.fdc.addressOf), [driveAddress(0), driveAddress(1)]);
  assert.equal(drives.fdc?.placeOf(driveAddress(2)), undefined);
  assert.equal(drives.scsi?.placesFor('disk').length, 256);
  assert.equal(drives.sata, undefined);
});

test('there are no root ports', () => assert.equal(I440FX_LAYOUT.portCount(new Set([3, 4]), 8), 0));

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePciAddress, pciAddressFromMap, pciAddressToMap, formatPciAddress } from '#api/devices/pci-address.ts';

test('converts between text and map', () => {
  const address = parsePciAddress('0000:1F:03.7');
  assert.deepEqual(address, { domain: 0, bus: 0x1f, slot: 3, function: 7 });
  const map = { type: 'pci', domain: '0x0000', bus: '0x1f', slot: '0x03', function: '0x7' };
  assert.deepEqual(pciAddressToMap(address), map);
  assert.deepEqual(pciAddressFromMap(map), address);
  assert.equal(formatPciAddress(address), '0000:1f:03.7');
});

const bad: Record<string, string> = {
  'a missing domain': '05:00.0',
  'a slot past 1f': '0000:05:20.0',
  'a function past 7': '0000:05:00.8',
  'trailing characters': '0000:05:00.0,foo',
  'an empty text': '',
};
for (const [name, text] of Object.entries(bad)) {
  test(`refuses an invalid text: ${name}`, () => assert.equal(parsePciAddress(text), undefined));
}

const badMaps: Record<string, Record<string, string>> = {
  'the address of a drive': { type: 'drive', controller: '0', bus: '0', target: '0', unit: '0' },
  'a map without slot': { type: 'pci', domain: '0x0000', bus: '0x01', function: '0x0' },
  'a slot that is too large': { type: 'pci', domain: '0x0000', bus: '0x01', slot: '0x20', function: '0x0' },
  'an invalid number': { type: 'pci', domain: '0x0000', bus: '0xzz', slot: '0x00', function: '0x0' },
};
for (const [name, map] of Object.entries(badMaps)) {
  test(`refuses an invalid map: ${name}`, () => assert.equal(pciAddressFromMap(map), undefined));
}

test('reads decimal numbers, which other tools write', () => {
  const map = { type: 'pci', domain: '0', bus: '16', slot: '0', function: '0' };
  assert.deepEqual(pciAddressFromMap(map), { domain: 0, bus: 16, slot: 0, function: 0 });
});

/** The layout is final. A change that breaks one of these tests moves devices of guests that exist: make another one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  behindPort,
  fixedAddress,
  MAX_PORTS,
  portCount,
  portOf,
  rootPortAddress,
} from '#node/definition/addresses/layout-q35.ts';
import { pciAddressFromMap, printPciAddress } from '#node/definition/addresses/pci-address.ts';

test('fixed devices stand where they always stood', () => {
  const placeOf = (id: Parameters<typeof fixedAddress>[0]) => printPciAddress(pciAddressFromMap(fixedAddress(id))!);
  assert.deepEqual(
    [placeOf('scsi0'), placeOf('balloon0'), placeOf('rng0')],
    ['0000:00:06.0', '0000:00:08.0', '0000:00:09.0'],
  );
});

test('ports fill slots 02 to 05, and what is behind them is on the bus of the next number', () => {
  const ports = [0, 7, 8, 31];
  assert.deepEqual(
    ports.map((port) => printPciAddress(rootPortAddress(port))),
    ['0000:00:02.0', '0000:00:02.7', '0000:00:03.0', '0000:00:05.7'],
  );
  assert.deepEqual(
    ports.map((port) => printPciAddress(behindPort(port))),
    ['0000:01:00.0', '0000:08:00.0', '0000:09:00.0', '0000:20:00.0'],
  );
});

test('an address knows its port', () => {
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
  'four spares fit beside four devices': { taken: upTo(4), want: 8 },
  'a fifth device needs another slot': { taken: upTo(5), want: 16 },
  'the highest port decides, however few are used': { taken: [17], want: 24 },
  'what was there stays there': { taken: [0], before: 24, want: 24 },
  'spares end where ports do': { taken: upTo(31), want: 32 },
  'all ports may be used': { taken: upTo(32), want: 32 },
};
for (const [name, { taken, before = 0, want }] of Object.entries(counts)) {
  test(name, () => assert.equal(portCount(new Set(taken), before), want));
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { array, assert as property, constantFrom, option, property as forAll, record, string } from 'fast-check';
import {
  diffIdentityStates,
  buildIdentityState,
  replayChanges,
  revertChanges,
} from '#api/identity/identity-changes.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityChange, IdentitySpec, IdentityStatus } from '#api/virtual-machine-identity/kind.ts';

const disk: LearnedDevice = { id: 'disk-a.b', type: 'disk', device: 'disk', address: { type: 'pci', bus: '0x02' } };
const FULL: [IdentitySpec, IdentityStatus] = [
  {
    firmware: { uuid: 'u1', serial: 's1' },
    smbios: { manufacturer: 'Acme' },
    interfaces: [{ name: 'lan', macAddress: '02:00:00:00:00:01' }],
  },
  { machine: { type: 'pc-q35-7.2' }, stateClaim: 'claim-1', devices: [disk] },
];

const cases: Record<string, { before: [IdentitySpec, IdentityStatus]; after: typeof FULL; want: IdentityChange[] }> = {
  'a new record': {
    before: [{}, {}],
    after: FULL,
    want: [
      { field: 'firmware.uuid', to: 'u1' },
      { field: 'firmware.serial', to: 's1' },
      { field: 'smbios.manufacturer', to: 'Acme' },
      { field: 'interfaces.lan.macAddress', to: '02:00:00:00:00:01' },
      { field: 'machine.type', to: 'pc-q35-7.2' },
      { field: 'stateClaim', to: 'claim-1' },
      { field: 'devices.disk-a.b', to: disk },
    ],
  },
  'parts of a device': {
    before: FULL,
    after: [FULL[0], { ...FULL[1], devices: [{ ...disk, address: { type: 'pci', bus: '0x03' }, plugged: false }] }],
    want: [
      { field: 'devices.disk-a.b.address', from: { type: 'pci', bus: '0x02' }, to: { type: 'pci', bus: '0x03' } },
      { field: 'devices.disk-a.b.plugged', to: false },
    ],
  },
  'a removed device and a replaced claim': {
    before: FULL,
    after: [FULL[0], { machine: { type: 'pc-q35-7.2' }, stateClaim: 'claim-2' }],
    want: [
      { field: 'stateClaim', from: 'claim-1', to: 'claim-2' },
      { field: 'devices.disk-a.b', from: disk },
    ],
  },
  'no changes if only the order of keys and rows differs': {
    before: [{}, { devices: [disk, { id: 'x', type: 't', device: 'd' }] }],
    after: [{}, { devices: [{ id: 'x', device: 'd', type: 't' }, disk] }],
    want: [],
  },
};
for (const [title, { before, after, want }] of Object.entries(cases)) {
  test(`changes: ${title}`, () => {
    const [from, to] = [buildIdentityState(...before), buildIdentityState(...after)];
    assert.deepEqual(diffIdentityStates(from, to), want);
    assert.deepEqual(replayChanges(from, want), to);
    assert.deepEqual(revertChanges(to, want), from);
  });
}

/** Ids and names that look like parts and paths. */
const ids = constantFrom('disk-a', 'disk-a.address', 'a.b', 'a', 'interfaces.a', 'plugged');
const device = record(
  {
    id: ids,
    type: constantFrom('disk', 'interface'),
    device: constantFrom('disk', 'virtio'),
    address: constantFrom<Record<string, string>>({ type: 'pci', bus: '0x01' }, { type: 'drive', id: 'a.b' }, {}),
    bootOrder: constantFrom(1, 2),
    plugged: constantFrom(false),
  },
  { requiredKeys: ['id', 'type', 'device'] },
);
const states = record({
  firmware: record({ uuid: string(), serial: option(string(), { nil: undefined }) }),
  interfaces: array(record({ name: ids, macAddress: string({ minLength: 1 }) }), { maxLength: 4 }),
  devices: array(device, { maxLength: 6 }),
  type: option(constantFrom('pc-q35-7.2', 'pc-i440fx-7.2'), { nil: undefined }),
}).map(({ firmware, interfaces, devices, type }) =>
  buildIdentityState({ firmware, interfaces }, { devices, ...(type !== undefined && { machine: { type } }) }),
);

test('replayed changes lead to the next state, and reverted ones back, through JSON and any number of states', () => {
  property(
    forAll(array(states, { minLength: 2, maxLength: 6 }), (all) => {
      const steps = all.slice(1).map((state, i) => diffIdentityStates(all[i]!, state));
      const stored = JSON.parse(JSON.stringify(steps)) as IdentityChange[][];
      const plain = (state: ReadonlyMap<string, unknown>): unknown =>
        JSON.parse(JSON.stringify(Object.fromEntries(state)));
      let state = all[0]!;
      for (const [i, changes] of stored.entries()) {
        state = replayChanges(state, changes);
        assert.deepEqual(plain(state), plain(all[i + 1]!));
      }
      for (const [i, changes] of [...stored.entries()].toReversed()) {
        state = revertChanges(state, changes);
        assert.deepEqual(plain(state), plain(all[i]!));
      }
    }),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderChangeRows } from '#api/identity/identity-change-text.ts';
import {
  appendHistory,
  buildHistoryEntries,
  MAX_ENTRY_BYTES,
  MAX_HISTORY_BYTES,
} from '#api/identity/identity-history.ts';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import { rootPortAddress } from '#api/devices/root-ports.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { type HistoryEntry, type IdentityChange, MAX_HISTORY } from '#api/virtual-machine-identity/kind.ts';

const AT = '2026-01-01T12:00:00Z';
const [EDIT, START] = [
  { cause: 'edit', by: 'alice' },
  { cause: 'start', instance: 'vmi-1' },
];
const pci = (bus: string) => ({ type: 'pci', domain: '0x0000', bus, slot: '0x00', function: '0x0' });
const drive = (unit: string) => ({ type: 'drive', controller: '0', bus: '0', target: '0', unit });
const disk: LearnedDevice = { id: 'disk-a', type: 'disk', device: 'disk', address: pci('0x02') };
const port: LearnedDevice = { id: 'rp0', type: 'controller', device: 'pcie-root-port', address: pci('0x00') };
/** Root ports with consecutive numbers. */
const portRows = (first: number, last: number): LearnedDevice[] =>
  Array.from({ length: last - first + 1 }, (_, i) => ({
    ...port,
    id: `rp${first + i}`,
    address: pciAddressToMap(rootPortAddress(first + i)),
  }));

test('changes with the same cause are one entry, and minor changes join the main change', () => {
  const uuid = { field: 'firmware.uuid', from: 'a', to: 'b' };
  const added = { field: 'devices.disk-a', to: disk };
  const silent = { field: 'devices.rp0', to: port };
  const caused = [
    { change: uuid, cause: EDIT },
    { change: added, cause: EDIT },
    { change: silent, cause: START },
  ];
  const what = 'firmware uuid changed from a to b; disk-a is new at 0000:02:00.0; rp0 is new at 0000:00:00.0';
  assert.deepEqual(buildHistoryEntries(AT, caused), [{ at: AT, what, ...EDIT, changes: [uuid, added, silent] }]);
  const alone = buildHistoryEntries(AT, [{ change: silent, cause: START }]);
  assert.deepEqual(alone, [{ at: AT, what: 'rp0 is new at 0000:00:00.0', ...START, changes: [silent] }]);
  const minor = { field: 'devices.disk-a.specParams', to: {} };
  const [entry] = buildHistoryEntries(AT, [{ change: minor, cause: START }]);
  assert.equal(entry?.what, 'minor properties of 1 device changed');
});

const texts: Record<string, [IdentityChange[], string]> = {
  'a removed device': [[{ field: 'devices.disk-a', from: disk }], 'disk-a is gone from 0000:02:00.0'],
  'an unplugged device': [
    [{ field: 'devices.disk-a.plugged', to: false }],
    'disk-a is unplugged and keeps its address',
  ],
  'a device that releases its address': [
    [
      { field: 'devices.disk-a.address', from: pci('0x02') },
      { field: 'devices.disk-a.plugged', to: false },
    ],
    'disk-a is unplugged; 0000:02:00.0 is released',
  ],
  'a device that is plugged in again': [[{ field: 'devices.disk-a.plugged', from: false }], 'disk-a is plugged in'],
  'a device with a new address': [
    [{ field: 'devices.disk-a.address', from: pci('0x02'), to: pci('0x03') }],
    'disk-a moved from 0000:02:00.0 to 0000:03:00.0',
  ],
  'a boot order': [[{ field: 'devices.disk-a.bootOrder', from: 1, to: 2 }], 'boot order of disk-a changed from 1 to 2'],
  'a MAC address': [[{ field: 'interfaces.lan.macAddress', from: 'x', to: 'y' }], 'MAC of lan changed from x to y'],
  'root ports, in ranges': [
    [...portRows(8, 15).map((row) => ({ field: `devices.${row.id}`, to: row })), { field: 'devices.rp0', from: port }],
    'rp0 is gone from 0000:00:00.0; rp8 to rp15 are new at 0000:00:03.0 to 0000:00:03.7',
  ],
  'another chipset': [
    [{ field: 'machine.type', from: 'pc-i440fx-7.2', to: 'pc-q35-7.2' }],
    'machine type changed from pc-i440fx-7.2 to pc-q35-7.2; chipset changed from i440fx to q35: no device keeps its address',
  ],
};
for (const [title, [changes, want]] of Object.entries(texts)) {
  test(`text: ${title}`, () => {
    const caused = changes.map((change) => ({ change, cause: START }));
    assert.deepEqual(
      buildHistoryEntries(AT, caused).map(({ what }) => what),
      [want],
    );
  });
}

test('a large write is split into bounded entries without losing a change', () => {
  const specParams = { text: 'x'.repeat(1000) };
  const changes = Array.from({ length: 120 }, (_, n) => {
    const id = `disk-${n}`;
    return { field: `devices.${id}`, to: { ...disk, id, specParams } };
  });
  const entries = buildHistoryEntries(
    AT,
    changes.map((change) => ({ change, cause: START })),
  );
  assert.ok(entries.length > 1);
  for (const { changes: part } of entries) assert.ok(JSON.stringify(part).length <= MAX_ENTRY_BYTES + 1024);
  assert.deepEqual(
    entries.flatMap((entry) => entry.changes),
    changes,
  );
  assert.match(entries[1]?.what ?? '', new RegExp(` \\(part 2 of ${entries.length}\\)$`));
});

test('a history drops its oldest entries by number and by size, and keeps the newest', () => {
  const entry = (what: string): HistoryEntry => ({ at: AT, what, cause: 'x' });
  const full = Array.from({ length: MAX_HISTORY }, (_, n) => entry(`${n}`));
  const longer = appendHistory(full, [entry('new')]);
  assert.deepEqual([longer.length, longer[0]?.what, longer.at(-1)?.what], [MAX_HISTORY, '1', 'new']);
  const large = Array.from({ length: 10 }, () => entry('x'.repeat(40 * 1024)));
  const cut = appendHistory(large, [entry('new')]);
  assert.ok(JSON.stringify(cut).length <= MAX_HISTORY_BYTES + 1024);
  assert.equal(cut.at(-1)?.what, 'new');
  assert.equal(appendHistory(full, [entry('x'.repeat(MAX_HISTORY_BYTES))]).length, 1);
  assert.deepEqual(appendHistory(undefined, []), []);
});

test('a table has a row for each change', () => {
  const changes = [
    { field: 'firmware.uuid', from: 'a', to: 'b' },
    { field: 'smbios.manufacturer', to: 'Acme' },
    { field: 'smbios.product', to: 'Anvil' },
    { field: 'devices.disk-a', to: disk },
    { field: 'devices.disk-b.plugged', to: false },
    ...portRows(8, 15).map((row) => ({ field: `devices.${row.id}`, to: row })),
    { field: 'devices.disk-d.address', from: drive('1'), to: drive('2') },
    { field: 'devices.disk-d.specParams', from: { bus: 'sata' }, to: { bus: 'scsi', io: { thread: '1' } } },
    { field: 'devices.disk-c.specParams', to: {} },
  ];
  assert.deepEqual(
    renderChangeRows({ changes }, new Map([['disk-d', { specParams: { bus: 'scsi' } }]])).map(
      ({ what, from, to }) => `${what}: ${from} -> ${to}`,
    ),
    [
      'firmware uuid: a -> b',
      'SMBIOS strings: <none> -> Acme, Anvil',
      'disk-a: <none> -> 0000:02:00.0',
      'disk-b plugged: yes -> no',
      'disk-d address: scsi 0:0:0:1 -> scsi 0:0:0:2',
      'disk-d properties: bus=sata -> bus=scsi, io=(thread=1)',
      'rp8 to rp15: <none> -> 0000:00:03.0 to 0000:00:03.7',
      '1 device:  -> minor properties',
    ],
  );
  const many = Array.from({ length: 20 }, (_, n) => ({ field: `devices.disk-${n}`, to: { ...disk, id: `disk-${n}` } }));
  assert.deepEqual(renderChangeRows({ changes: many }), [{ what: '20 devices', from: '<none>', to: '' }]);
  assert.deepEqual(renderChangeRows({ what: 'an old entry' }), [{ what: 'an old entry', from: '', to: '' }]);
});

/**
 * Tests the action table of seed 003 (docs/seeds.md), as in the code of oVirt (VmDevicesMonitoring for reports, the plug commands for other
 * writes of addresses). The rows of the original that we override, and our rule:
 *
 *   reported without an address: skipped            the row is updated and keeps its address: `''` means unknown
 *   reported without an id: matched by device name, the device is ignored (host-reader.test.ts): our hosts always send ids,
 *     or inserted under a new id                      and a device without one would be inserted with every report
 *   reported: plugged                               unless the template unplugs it: that is recorded before the guest is
 *                                                     asked to release it
 *   inserted: never managed                         managed as reported, or special managed (KubeVirt object)
 *   not reported, managed, plugged: unplugged and   kept with its address: the next start plugs it in there again; only
 *     its address cleared                             detaching deletes a row
 *   not reported, balloon: kept                     like every device that the spec requests
 *   not reported, unmanaged: deleted                root ports stay until the chipset changes: devices behind would move
 *   machine type changed: all addresses cleared     only if the chipset changes
 *   interface of a disk changed: address cleared    left to the allocator, which knows the addresses of each bus
 *   replugged NIC: address cleared if another row   cleared when the other device is reported there
 *     has the same
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import {
  type ReadRowsInput,
  decideReadRows,
  decideStoppedRows,
  type RowDecision,
  rowsOf,
  decideRunningRows,
} from '#controllers/device-map/action-table.ts';
import type { DeviceRequests } from '#controllers/device-map/requested-devices.ts';

const pci = (bus: string): DeviceAddress => ({ type: 'pci', domain: '0x0000', bus, slot: '0x00', function: '0x0' });
const A = pci('0x01');
const B = pci('0x02');

const row = (id: string, type: string, device: string, rest: Partial<LearnedDevice> = {}): LearnedDevice => ({
  id,
  type,
  device,
  managed: true,
  ...rest,
});
const disk = (rest: Partial<LearnedDevice> = {}) => row('disk-a', 'disk', 'disk', { address: A, ...rest });
const nic = (rest: Partial<LearnedDevice> = {}) => row('nic-a', 'interface', 'virtio', { address: A, ...rest });
const usb = (rest: Partial<LearnedDevice> = {}) =>
  row('usb0', 'controller', 'usb', { address: B, managed: false, ...rest });
const port = row('rp3', 'controller', 'pcie-root-port', { address: B, managed: false });

const WANTED: DeviceRequests = new Map(['disk-a', 'nic-a', 'rng0', 'balloon0'].map((id) => [id, { plugged: true }]));
const UNPLUGGED: DeviceRequests = new Map(['disk-a', 'nic-a'].map((id) => [id, { plugged: false }]));
const DETACHED: DeviceRequests = new Map();
const SPECIAL = [{ type: 'controller', device: 'usb' }];

interface Case extends Partial<ReadRowsInput> {
  readonly want: readonly RowDecision[];
}

const aDecision = (action: RowDecision['action'], next: LearnedDevice): RowDecision => ({
  id: next.id,
  action,
  row: next,
});
const aDeletion = (id: string): RowDecision => ({ id, action: 'delete' });

const cases: Record<string, Case> = {
  // Reported.
  'a reported device gets the address of the report': {
    rows: [disk()],
    reported: [disk({ address: B })],
    want: [aDecision('update', disk({ address: B }))],
  },
  'a reported device that was unplugged becomes plugged': {
    rows: [nic({ plugged: false })],
    reported: [nic()],
    want: [aDecision('update', nic())],
  },
  'boot order, read-only and parameters are those of the report': {
    rows: [disk({ bootOrder: 1, specParams: { x: '1' } })],
    reported: [disk({ readonly: true, specParams: { x: '2' } })],
    want: [aDecision('update', disk({ readonly: true, specParams: { x: '2' } }))],
  },
  'parameters that are not reported stay': {
    rows: [usb({ specParams: { index: '0' } })],
    reported: [usb()],
    want: [aDecision('update', usb({ specParams: { index: '0' } }))],
  },
  'another model of an interface is recorded': {
    rows: [nic()],
    reported: [nic({ device: 'e1000e' })],
    want: [aDecision('update', nic({ device: 'e1000e' }))],
  },
  'an empty address keeps the recorded one': {
    rows: [disk()],
    reported: [disk({ address: {} })],
    want: [aDecision('update', disk())],
  },
  'a missing address keeps the recorded one': {
    rows: [disk()],
    reported: [disk({ address: undefined })],
    want: [aDecision('update', disk())],
  },
  'an unknown device is inserted, managed as reported': {
    reported: [usb(), disk()],
    want: [aDecision('insert', usb()), aDecision('insert', disk())],
  },
  'an unknown device without the managed flag is unmanaged': {
    reported: [usb({ managed: undefined })],
    want: [aDecision('insert', usb())],
  },
  'an unknown special managed device is inserted as managed': {
    reported: [usb()],
    special: SPECIAL,
    want: [aDecision('insert', usb({ managed: true, specialManaged: true }))],
  },
  'a device that is no longer special managed becomes unmanaged': {
    rows: [usb({ managed: true, specialManaged: true })],
    reported: [usb()],
    want: [aDecision('update', usb())],
  },
  'an unknown device with an empty address is inserted': {
    reported: [usb({ address: {} })],
    want: [aDecision('insert', usb({ address: undefined }))],
  },
  'the first of two devices with the same id counts': {
    reported: [disk(), disk({ address: B })],
    want: [aDecision('insert', disk())],
  },
  'a reported device that is to be unplugged is unplugged and keeps its address until the guest has released it': {
    rows: [disk(), nic({ address: B })],
    reported: [disk(), nic({ address: B })],
    requests: UNPLUGGED,
    want: [aDecision('update', disk({ plugged: false })), aDecision('update', nic({ address: B, plugged: false }))],
  },
  'a reported device that the template does not have was plugged in for this run only': {
    reported: [disk()],
    requests: DETACHED,
    want: [aDecision('insert', disk())],
  },
  // Not reported.
  'a requested device that is not reported keeps its address': { rows: [disk()], want: [aDecision('keep', disk())] },
  'a device that is requested again is plugged at its kept address before it is reported': {
    rows: [nic({ plugged: false })],
    want: [aDecision('keep', nic())],
  },
  'an unplugged interface keeps its address': {
    rows: [nic()],
    requests: UNPLUGGED,
    want: [aDecision('keep', nic({ plugged: false }))],
  },
  'an unplugged disk releases its address': {
    rows: [disk()],
    requests: UNPLUGGED,
    want: [aDecision('release', disk({ plugged: false, address: undefined }))],
  },
  'a detached device is deleted': {
    rows: [disk(), nic()],
    requests: DETACHED,
    want: [aDeletion('disk-a'), aDeletion('nic-a')],
  },
  'graphics, console and tpm have no address and are kept': {
    rows: ['graphics', 'console', 'tpm'].map((type) => row(type, type, type, { managed: false })),
    want: ['graphics', 'console', 'tpm'].map((type) => aDecision('keep', row(type, type, type, { managed: false }))),
  },
  'rng and balloon are kept if the template requests them': {
    rows: [row('rng0', 'rng', 'virtio', { address: A }), row('balloon0', 'balloon', 'memballoon', { address: B })],
    want: [
      aDecision('keep', row('rng0', 'rng', 'virtio', { address: A })),
      aDecision('keep', row('balloon0', 'balloon', 'memballoon', { address: B })),
    ],
  },
  'rng is deleted if the template no longer requests it': {
    rows: [row('rng0', 'rng', 'virtio', { address: A })],
    requests: DETACHED,
    want: [aDeletion('rng0')],
  },
  'an unmanaged device that is not reported is deleted': { rows: [usb()], want: [aDeletion('usb0')] },
  'a special managed device that is not reported is kept': {
    rows: [usb()],
    special: SPECIAL,
    want: [aDecision('keep', usb({ managed: true, specialManaged: true }))],
  },
  'a device that is no longer special managed and not reported is deleted': {
    rows: [usb({ managed: true, specialManaged: true })],
    want: [aDeletion('usb0')],
  },
  'a special managed device that is reported without the flag becomes unmanaged when the list no longer has it': {
    rows: [usb({ managed: true, specialManaged: true })],
    reported: [usb({ managed: undefined })],
    want: [aDecision('update', usb())],
  },
  'a managed device that is also listed is not marked as special': {
    reported: [usb({ managed: true })],
    special: SPECIAL,
    want: [aDecision('insert', usb({ managed: true }))],
  },
  'a managed device of a type that no template requests is kept': {
    rows: [row('video0', 'video', 'qxl', { address: A })],
    want: [aDecision('keep', row('video0', 'video', 'qxl', { address: A }))],
  },
  'a root port stays until the chipset changes': { rows: [port], want: [aDecision('keep', port)] },
  // Addresses.
  'an address that another device has now is released': {
    rows: [nic({ plugged: false })],
    reported: [disk()],
    requests: new Map([...UNPLUGGED, ['disk-a', { plugged: true }]]),
    want: [aDecision('insert', disk()), aDecision('release', nic({ plugged: false, address: undefined }))],
  },
  'the order of the keys of an address does not matter': {
    rows: [nic({ address: Object.fromEntries(Object.entries(A).toReversed()) })],
    reported: [disk()],
    want: [aDecision('insert', disk()), aDecision('release', nic({ address: undefined }))],
  },
  'two drives may have the same address: it does not name the controller': {
    rows: [row('disk-a', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })],
    reported: [row('disk-b', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })],
    want: [
      aDecision('insert', row('disk-b', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })),
      aDecision('keep', row('disk-a', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })),
    ],
  },
  'another chipset drops all addresses, root ports and unmanaged devices': {
    rows: [nic(), disk({ address: B }), usb(), port],
    reported: [disk({ address: {} })],
    chipsetChanged: true,
    want: [
      aDecision('update', disk({ address: undefined })),
      aDecision('keep', nic({ address: undefined })),
      aDeletion('usb0'),
      aDeletion('rp3'),
    ],
  },
};

for (const [name, { want, ...given }] of Object.entries(cases)) {
  test(name, () => {
    const reading = { rows: [], reported: [], requests: WANTED, special: [], chipsetChanged: false, ...given };
    assert.deepEqual(plain(decideReadRows(reading)), plain(want));
  });
}

/** Returns the value as it is stored, without undefined fields. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test('the case of the original: two updates, one deletion, one insertion', () => {
  const video = row('video0', 'video', 'qxl');
  const cdrom = row('disk-cd', 'disk', 'cdrom');
  const serial = row('serial0', 'controller', 'virtio-serial', { address: pci('0x03'), managed: false });
  const decisions = decideReadRows({
    rows: [usb(), video, cdrom],
    reported: [serial, { ...video, address: A }, { ...cdrom, address: B }],
    requests: new Map([['disk-cd', { plugged: true }]]),
    special: [],
    chipsetChanged: false,
  });
  assert.deepEqual(
    decisions.map(({ id, action }) => `${action} ${id}`),
    ['insert serial0', 'update video0', 'update disk-cd', 'delete usb0'],
  );
  assert.deepEqual(
    rowsOf(decisions).map(({ address }) => address),
    [pci('0x03'), A, B],
  );
});

test('an empty report neither deletes nor inserts requested devices', () => {
  const rows = [disk(), nic({ address: B }), port];
  const reading = { rows, reported: [], requests: WANTED, special: [], chipsetChanged: false };
  assert.deepEqual(rowsOf(decideReadRows(reading)), rows);
});

const ROWS = [disk(), nic({ address: B }), usb(), port];

test('without a guest only the template decides, and devices of the machine stay', () => {
  const decideStopped = (requests: DeviceRequests) => decideStoppedRows(ROWS, requests);
  assert.deepEqual(rowsOf(decideStopped(WANTED)), ROWS);
  assert.deepEqual(plain(decideStopped(UNPLUGGED)), [
    aDecision('release', plain(disk({ plugged: false, address: undefined })) as LearnedDevice),
    aDecision('keep', nic({ address: B, plugged: false })),
    aDecision('keep', usb()),
    aDecision('keep', port),
  ]);
  assert.deepEqual(rowsOf(decideStopped(DETACHED)), [usb(), port]);
  assert.deepEqual(rowsOf(decideStoppedRows(rowsOf(decideStopped(UNPLUGGED)), WANTED))[1], nic({ address: B }));
});

test('without a new reading only the plugged state of a running guest changes', () => {
  assert.deepEqual(rowsOf(decideRunningRows(ROWS, DETACHED)), ROWS);
  assert.deepEqual(rowsOf(decideRunningRows(ROWS, UNPLUGGED)), [
    disk({ plugged: false }),
    nic({ address: B, plugged: false }),
    usb(),
    port,
  ]);
});

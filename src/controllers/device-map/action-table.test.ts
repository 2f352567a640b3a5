/**
 * The action table of the seed, as oVirt's code has it (VmDevicesMonitoring: reports; the plug commands: what writes
 * addresses otherwise). Rows of the original that we override, and why:
 *
 *   reported without an address: skipped            its row is updated and keeps the address that it has: `''` is unknown
 *   reported without an id: matched by device name, such a device is left out (reading.test.ts): our hosts send ids on
 *     or inserted under a new id                      every path, so that nothing is inserted anew with every report
 *   reported: plugged                               unless the template says otherwise: it is on its way out, and that is
 *                                                     written before the guest is asked
 *   inserted: never managed                         managed as reported, or special managed (KubeVirt object)
 *   not reported, managed, plugged: unplugged and   kept, with its address: what the spec still wants is plugged in there
 *     its address cleared                             again at the next start; only detaching deletes a row
 *   not reported, balloon: kept                     as everything else that the spec asks for
 *   not reported, unmanaged: deleted                but root ports stay while the chipset does: what is behind would move
 *   machine type changed: all addresses cleared     only where the chipset changes
 *   interface of a disk changed: address cleared    left to the allocator, which knows which address fits which bus
 *   replugged NIC: address cleared where another    cleared when the other device is reported there
 *     row has the same
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import {
  type GuestReading,
  readActions,
  restingActions,
  type RowDecision,
  rowsOf,
  runningActions,
} from '#controllers/device-map/action-table.ts';
import type { Wishes } from '#controllers/device-map/wanted-devices.ts';

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

const WANTED: Wishes = new Map(['disk-a', 'nic-a', 'rng0', 'balloon0'].map((id) => [id, { plugged: true }]));
const UNPLUGGED: Wishes = new Map(['disk-a', 'nic-a'].map((id) => [id, { plugged: false }]));
const DETACHED: Wishes = new Map();
const SPECIAL = [{ type: 'controller', device: 'usb' }];

interface Case extends Partial<GuestReading> {
  readonly want: readonly RowDecision[];
}

const decided = (action: RowDecision['action'], next: LearnedDevice): RowDecision => ({
  id: next.id,
  action,
  row: next,
});
const deleted = (id: string): RowDecision => ({ id, action: 'delete' });

const cases: Record<string, Case> = {
  // Reported.
  'reported, and on record: its address is that of the report': {
    rows: [disk()],
    reported: [disk({ address: B })],
    want: [decided('update', disk({ address: B }))],
  },
  'reported, on record as unplugged: it is plugged': {
    rows: [nic({ plugged: false })],
    reported: [nic()],
    want: [decided('update', nic())],
  },
  'boot order, read-only and parameters are those of the report': {
    rows: [disk({ bootOrder: 1, specParams: { x: '1' } })],
    reported: [disk({ readonly: true, specParams: { x: '2' } })],
    want: [decided('update', disk({ readonly: true, specParams: { x: '2' } }))],
  },
  'parameters that the report does not tell stay': {
    rows: [usb({ specParams: { index: '0' } })],
    reported: [usb()],
    want: [decided('update', usb({ specParams: { index: '0' } }))],
  },
  'another model of an interface is told': {
    rows: [nic()],
    reported: [nic({ device: 'e1000e' })],
    want: [decided('update', nic({ device: 'e1000e' }))],
  },
  'an empty address is no news': {
    rows: [disk()],
    reported: [disk({ address: {} })],
    want: [decided('update', disk())],
  },
  'an address that is not told is no news': {
    rows: [disk()],
    reported: [disk({ address: undefined })],
    want: [decided('update', disk())],
  },
  'reported, not on record: inserted, managed as reported': {
    reported: [usb(), disk()],
    want: [decided('insert', usb()), decided('insert', disk())],
  },
  'reported without saying whether it is managed: it was found': {
    reported: [usb({ managed: undefined })],
    want: [decided('insert', usb())],
  },
  'special managed: inserted as managed': {
    reported: [usb()],
    special: SPECIAL,
    want: [decided('insert', usb({ managed: true, specialManaged: true }))],
  },
  'no longer special managed: unmanaged again': {
    rows: [usb({ managed: true, specialManaged: true })],
    reported: [usb()],
    want: [decided('update', usb())],
  },
  'an unknown device with an empty address is inserted': {
    reported: [usb({ address: {} })],
    want: [decided('insert', usb({ address: undefined }))],
  },
  'of two with one id the first counts': {
    reported: [disk(), disk({ address: B })],
    want: [decided('insert', disk())],
  },
  'reported, but to be unplugged: unplugged, and its address stays until the guest has let go': {
    rows: [disk(), nic({ address: B })],
    reported: [disk(), nic({ address: B })],
    wishes: UNPLUGGED,
    want: [decided('update', disk({ plugged: false })), decided('update', nic({ address: B, plugged: false }))],
  },
  'reported, but not in the template: plugged in for this run only': {
    reported: [disk()],
    wishes: DETACHED,
    want: [decided('insert', disk())],
  },
  // Not reported.
  'wanted, not reported: kept with its address': { rows: [disk()], want: [decided('keep', disk())] },
  'wanted again, not reported yet: plugged, at the address that was kept': {
    rows: [nic({ plugged: false })],
    want: [decided('keep', nic())],
  },
  'an unplugged interface keeps its address': {
    rows: [nic()],
    wishes: UNPLUGGED,
    want: [decided('keep', nic({ plugged: false }))],
  },
  'an unplugged disk releases its address': {
    rows: [disk()],
    wishes: UNPLUGGED,
    want: [decided('release', disk({ plugged: false, address: undefined }))],
  },
  'detached: deleted': { rows: [disk(), nic()], wishes: DETACHED, want: [deleted('disk-a'), deleted('nic-a')] },
  'graphics, console and tpm have no address: nothing': {
    rows: ['graphics', 'console', 'tpm'].map((type) => row(type, type, type, { managed: false })),
    want: ['graphics', 'console', 'tpm'].map((type) => decided('keep', row(type, type, type, { managed: false }))),
  },
  'rng and balloon that the template asks for are kept': {
    rows: [row('rng0', 'rng', 'virtio', { address: A }), row('balloon0', 'balloon', 'memballoon', { address: B })],
    want: [
      decided('keep', row('rng0', 'rng', 'virtio', { address: A })),
      decided('keep', row('balloon0', 'balloon', 'memballoon', { address: B })),
    ],
  },
  'rng that the template no longer asks for is deleted': {
    rows: [row('rng0', 'rng', 'virtio', { address: A })],
    wishes: DETACHED,
    want: [deleted('rng0')],
  },
  'unmanaged: deleted': { rows: [usb()], want: [deleted('usb0')] },
  'special managed: kept': {
    rows: [usb()],
    special: SPECIAL,
    want: [decided('keep', usb({ managed: true, specialManaged: true }))],
  },
  'special managed until now: deleted': {
    rows: [usb({ managed: true, specialManaged: true })],
    want: [deleted('usb0')],
  },
  'special managed, and reported without saying so: unmanaged when the list no longer has it': {
    rows: [usb({ managed: true, specialManaged: true })],
    reported: [usb({ managed: undefined })],
    want: [decided('update', usb())],
  },
  'managed by itself, and listed: not marked as special': {
    reported: [usb({ managed: true })],
    special: SPECIAL,
    want: [decided('insert', usb({ managed: true }))],
  },
  'managed, of a type that no template names: kept': {
    rows: [row('video0', 'video', 'qxl', { address: A })],
    want: [decided('keep', row('video0', 'video', 'qxl', { address: A }))],
  },
  'a root port stays as long as the chipset does': { rows: [port], want: [decided('keep', port)] },
  // Of addresses.
  'a place that was given away is not given back': {
    rows: [nic({ plugged: false })],
    reported: [disk()],
    wishes: new Map([...UNPLUGGED, ['disk-a', { plugged: true }]]),
    want: [decided('insert', disk()), decided('release', nic({ plugged: false, address: undefined }))],
  },
  'the order of the keys of an address says nothing': {
    rows: [nic({ address: Object.fromEntries(Object.entries(A).toReversed()) })],
    reported: [disk()],
    want: [decided('insert', disk()), decided('release', nic({ address: undefined }))],
  },
  'two drives may have one address: it does not say on which controller': {
    rows: [row('disk-a', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })],
    reported: [row('disk-b', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })],
    want: [
      decided('insert', row('disk-b', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })),
      decided('keep', row('disk-a', 'disk', 'disk', { address: { type: 'drive', unit: '0' } })),
    ],
  },
  'another chipset: all addresses are dropped, ports and what was found go': {
    rows: [nic(), disk({ address: B }), usb(), port],
    reported: [disk({ address: {} })],
    chipsetChanged: true,
    want: [
      decided('update', disk({ address: undefined })),
      decided('keep', nic({ address: undefined })),
      deleted('usb0'),
      deleted('rp3'),
    ],
  },
};

for (const [name, { want, ...given }] of Object.entries(cases)) {
  test(name, () => {
    const reading = { rows: [], reported: [], wishes: WANTED, special: [], chipsetChanged: false, ...given };
    assert.deepEqual(plain(readActions(reading)), plain(want));
  });
}

/** As it is stored: what is undefined is not there. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test("the original's own case: two updates, one delete, one insert", () => {
  const video = row('video0', 'video', 'qxl');
  const cdrom = row('disk-cd', 'disk', 'cdrom');
  const serial = row('serial0', 'controller', 'virtio-serial', { address: pci('0x03'), managed: false });
  const decisions = readActions({
    rows: [usb(), video, cdrom],
    reported: [serial, { ...video, address: A }, { ...cdrom, address: B }],
    wishes: new Map([['disk-cd', { plugged: true }]]),
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

test('an empty report deletes and inserts nothing that the VM still wants', () => {
  const rows = [disk(), nic({ address: B }), port];
  const reading = { rows, reported: [], wishes: WANTED, special: [], chipsetChanged: false };
  assert.deepEqual(rowsOf(readActions(reading)), rows);
});

const ROWS = [disk(), nic({ address: B }), usb(), port];

test('without a guest: the template alone decides, and what came with the machine stays', () => {
  const acts = (wishes: Wishes) => restingActions(ROWS, wishes);
  assert.deepEqual(rowsOf(acts(WANTED)), ROWS);
  assert.deepEqual(plain(acts(UNPLUGGED)), [
    decided('release', plain(disk({ plugged: false, address: undefined })) as LearnedDevice),
    decided('keep', nic({ address: B, plugged: false })),
    decided('keep', usb()),
    decided('keep', port),
  ]);
  assert.deepEqual(rowsOf(acts(DETACHED)), [usb(), port]);
  assert.deepEqual(rowsOf(restingActions(rowsOf(acts(UNPLUGGED)), WANTED))[1], nic({ address: B }));
});

test('while the guest runs and tells nothing new: only what is to be plugged is written', () => {
  assert.deepEqual(rowsOf(runningActions(ROWS, DETACHED)), ROWS);
  assert.deepEqual(rowsOf(runningActions(ROWS, UNPLUGGED)), [
    disk({ plugged: false }),
    nic({ address: B, plugged: false }),
    usb(),
    port,
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAddress } from '#api/devices/device-address.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { layOutAsLibvirt, type LayoutOptions } from '#api/libvirt-layout/lay-out.ts';
import { targetIndex } from '#api/libvirt-layout/drive-units.ts';

const row = (id: string, kind: string, more: Partial<LearnedDevice> = {}): LearnedDevice => {
  const [type = '', device = ''] = kind.split('/');
  return { id, type, device, ...more };
};
const pci = (slot: string, bus = '0x00') => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
const disk = (id: string, bus = 'virtio', more: Partial<LearnedDevice> = {}) =>
  row(id, 'disk/disk', { ...more, specParams: { bus } });

interface Case extends Partial<LayoutOptions> {
  readonly rows: readonly LearnedDevice[];
  readonly want: Readonly<Record<string, string>>;
}

const cases: Record<string, Case> = {
  'assigns addresses by class, in the order of libvirt': {
    rows: [
      row('video1', 'video/vga'),
      disk('d'),
      row('b', 'balloon/memballoon'),
      row('s', 'sound/ich6'),
      row('n', 'interface/virtio'),
    ],
    want: { video1: '0000:00:02.0', d: '0000:00:05.0', b: '0000:00:06.0', s: '0000:00:04.0', n: '0000:00:03.0' },
  },
  'sorts disks by the index of their target': {
    rows: [disk('a'), disk('b')],
    targets: new Map([
      ['a', 5],
      ['b', 4],
    ]),
    want: { a: '0000:00:03.0', b: '0000:00:02.0' },
  },
  'keeps a known address and skips its slot': {
    rows: [disk('a', 'virtio', { address: pci('0x02') }), row('n', 'interface/virtio')],
    want: { a: '0000:00:02.0', n: '0000:00:03.0' },
  },
  'treats an empty address as unknown': {
    rows: [row('n', 'interface/virtio', { address: {} })],
    want: { n: '0000:00:02.0' },
  },
  'assigns no address to an unplugged device': {
    rows: [row('n', 'interface/virtio', { plugged: false }), disk('a')],
    want: { n: '', a: '0000:00:02.0' },
  },
  'leaves a slot free for an agent channel that no row lists': {
    rows: [row('n', 'interface/virtio'), disk('a')],
    hasAgentChannel: true,
    want: { n: '0000:00:02.0', a: '0000:00:04.0' },
  },
  'gives each device of q35 a root port of its own': {
    chipset: 'q35',
    rows: [disk('a'), row('v', 'video/vga'), row('n', 'interface/e1000e')],
    want: { a: '0000:02:00.0', v: '0000:00:01.0', n: '0000:01:00.0' },
  },
  'uses existing ports before new ones': {
    chipset: 'q35',
    rows: [
      row('rp0', 'controller/pcie-root-port', { address: pci('0x02') }),
      row('rp1', 'controller/pcie-root-port'),
      disk('a', 'virtio', { address: pci('0x00', '0x02') }),
      disk('b'),
    ],
    want: { rp0: '0000:00:02.0', rp1: '', a: '0000:02:00.0', b: '0000:01:00.0' },
  },
};

for (const [name, { rows, want, ...options }] of Object.entries(cases)) {
  test(name, () => {
    const laidOut = layOutAsLibvirt(rows, { chipset: 'i440fx', ...options });
    assert.deepEqual(Object.fromEntries(laidOut.rows.map((each) => [each.id, formatAddress(each)])), want);
  });
}

test('target names are numbers to the base of 26', () => {
  const names = { vda: 0, sdz: 25, vdaa: 26, hdc: 2, vdzz: 701, vda1: 0, nvme0: undefined, vd: undefined };
  for (const [name, index] of Object.entries(names)) assert.equal(targetIndex(name), index, name);
});

const kinds = [
  ...[
    'interface/virtio',
    'interface/rtl8139',
    'sound/ich6',
    'sound/ich9',
    'video/vga',
    'balloon/memballoon',
    'rng/virtio',
  ],
  ...[
    'disk/disk',
    'controller/virtio-scsi',
    'controller/virtio-serial',
    'controller/usb',
    'channel/unix',
    '__proto__/__proto__',
  ],
];
const anyRow = fc.record({
  kind: fc.constantFrom(...kinds),
  bus: fc.constantFrom('virtio', 'ide', 'scsi', '__proto__'),
  slot: fc.option(fc.integer({ min: 2, max: 31 }), { nil: undefined, freq: 3 }),
});
const anyRows = fc.array(anyRow, { maxLength: 40 }).map((items) => {
  const slots = new Set<number>();
  return items.map(({ kind, bus, slot }, i) => {
    const isFree = slot !== undefined && !slots.has(slot) && kind !== 'disk/disk' && kind !== 'channel/unix';
    if (isFree) slots.add(slot);
    const address = isFree ? { address: pci(`0x${slot.toString(16).padStart(2, '0')}`) } : {};
    return row(`d${i}`, kind, { specParams: { bus }, ...address });
  });
});

test('keeps known addresses, assigns unique addresses, and changes nothing the second time', () => {
  fc.assert(
    fc.property(anyRows, fc.constantFrom('i440fx' as const, 'q35' as const), (rows, chipset) => {
      const options = { chipset, defaults: { balloon: true, usb: true } };
      const first = layOutAsLibvirt(rows, options);
      for (const [i, { address }] of rows.entries()) {
        if (address !== undefined) assert.deepEqual(first.rows[i]?.address, address);
      }
      const places = first.rows.map((each) => formatAddress(each)).filter((text) => text.startsWith('0000:'));
      assert.equal(new Set(places).size, places.length);
      assert.deepEqual(layOutAsLibvirt(first.rows, options).rows, first.rows);
    }),
    { numRuns: 150 },
  );
});

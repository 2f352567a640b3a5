/** Disks and interfaces by chipset: which are defined, refused or left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { defineDomain, type DefineResult } from '#node/definition/define-domain.ts';
import type { DiskDevice } from '#node/hardware/domain-definition.ts';
import { anInput, aVmi, someMedia } from '#node/definition/testing/a-vmi.ts';

type Devices = NonNullable<DomainSpec['devices']>;
type Disk = NonNullable<Devices['disks']>[number];

function define(machine: string, devices: Devices, missing: readonly string[] = []): DefineResult {
  const names = (devices.disks ?? []).map(({ name }) => name);
  const vmi = aVmi(
    { machine: { type: machine }, devices },
    {
      volumes: names.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      networks: (devices.interfaces ?? []).map(({ name }) => ({ name, pod: {} })),
    },
  );
  const media = someMedia(names.filter((name) => !missing.includes(name)));
  for (const { name, lun } of devices.disks ?? []) {
    if (lun !== undefined) media.set(name, { source: { path: '/dev/sdx', format: 'raw' }, readonly: false });
  }
  return defineDomain(anInput(vmi, { volumes: media }));
}

function disksOf({ definition, problems }: DefineResult): DiskDevice[] {
  assert.deepEqual(problems, undefined);
  return definition.devices.filter((device) => device.type === 'disk');
}

const kinds: Record<string, { machine?: string; disk: Omit<Disk, 'name'>; want: Partial<DiskDevice> }> = {
  'an ide disk': { disk: { disk: { bus: 'ide' } }, want: { media: 'disk', bus: 'ide', readonly: false } },
  'a cdrom that names no bus, on i440fx': { disk: { cdrom: {} }, want: { media: 'cdrom', bus: 'ide', readonly: true } },
  'a cdrom that names no bus, on q35': { machine: 'q35', disk: { cdrom: {} }, want: { media: 'cdrom', bus: 'sata' } },
  'a floppy': { disk: { floppy: {} }, want: { media: 'floppy', bus: 'fdc', readonly: false, bootOrder: undefined } },
  'a write-protected floppy': { disk: { floppy: { readonly: true } }, want: { media: 'floppy', readonly: true } },
  'a lun': { disk: { lun: {} }, want: { media: 'lun', bus: 'scsi', readonly: false } },
  'a lun on q35': { machine: 'q35', disk: { lun: { bus: 'scsi' } }, want: { media: 'lun', bus: 'scsi' } },
  'a floppy that boots': { disk: { floppy: {}, bootOrder: 1 }, want: { bootOrder: 1 } },
};
for (const [name, { machine = 'pc', disk, want }] of Object.entries(kinds)) {
  test(`defines ${name}`, () => {
    const [device] = disksOf(define(machine, { disks: [{ name: 'd', ...disk }] }));
    const keys = Object.keys(want) as (keyof DiskDevice)[];
    assert.deepEqual(Object.fromEntries(keys.map((key) => [key, device?.[key]])), want);
  });
}

const refused: Record<string, { machine?: string; devices: Devices; problem: string | RegExp }> = {
  'ide disks on q35': {
    devices: { disks: [{ name: 'd', disk: { bus: 'ide' } }] },
    problem:
      'spec.domain.devices.disks[0].disk.bus: Invalid value: "ide": q35 machines have no IDE controller; use sata, scsi or virtio, or a machine type pc-i440fx-*',
  },
  'ide cdroms on q35': {
    devices: { disks: [{ name: 'd', cdrom: { bus: 'ide' } }] },
    problem:
      'spec.domain.devices.disks[0].cdrom.bus: Invalid value: "ide": q35 machines have no IDE controller; use sata, scsi, or a machine type pc-i440fx-*',
  },
  'floppies on q35': {
    devices: { disks: [{ name: 'd', floppy: {} }] },
    problem:
      'spec.domain.devices.disks[0].floppy: Forbidden: q35 machines have no floppy controller; use a cdrom, or a machine type pc-i440fx-*',
  },
  'sata disks on i440fx': {
    machine: 'pc',
    devices: { disks: [{ name: 'd', disk: { bus: 'sata' } }] },
    problem:
      'spec.domain.devices.disks[0].disk.bus: Invalid value: "sata": i440fx machines have no SATA controller; use ide, scsi or virtio',
  },
  'an address for an e1000 on q35': {
    devices: { interfaces: [{ name: 'a', model: 'e1000', pciAddress: '0000:01:00.0' }] },
    problem:
      'spec.domain.devices.interfaces[0].pciAddress: Forbidden: an interface of the model e1000 is on the root bus, where its address cannot be chosen',
  },
  'ide disks that are read-only': {
    machine: 'pc',
    devices: { disks: [{ name: 'd', disk: { bus: 'ide', readonly: true } }] },
    problem: /^spec\.domain\.devices\.disks\[0\]\.disk\.bus: Invalid value: "ide": ide disks are always writable/,
  },
  'a fifth ide disk': {
    machine: 'pc',
    devices: { disks: ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, disk: { bus: 'ide' as const } })) },
    problem: /^spec\.domain\.devices\.disks\[4\]: Invalid value: "disk-e": no IDE unit is free: a guest has 4$/,
  },
  'a third floppy': {
    machine: 'pc',
    devices: { disks: ['a', 'b', 'c'].map((name) => ({ name, floppy: {} })) },
    problem: /^spec\.domain\.devices\.disks\[2\]: .* no floppy drive is free: a guest has 2$/,
  },
  'a disk of two kinds': {
    machine: 'pc',
    devices: { disks: [{ name: 'd', cdrom: {}, floppy: {} }] },
    problem: 'spec.domain.devices.disks[0].floppy: Forbidden: may not be set together with cdrom',
  },
  'a serial for a lun': {
    devices: { disks: [{ name: 'd', lun: {}, serial: 'S' }] },
    problem: /^spec\.domain\.devices\.disks\[0\]\.serial: Forbidden: a LUN has the serial number of its device/,
  },
  'a floppy with an open tray': {
    machine: 'pc',
    devices: { disks: [{ name: 'd', floppy: { tray: 'open' } }] },
    problem: /^spec\.domain\.devices\.disks\[0\]\.floppy\.tray: Forbidden/,
  },
};
for (const [name, { machine = 'q35', devices, problem }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    const lines = (define(machine, devices).problems ?? []).map(({ field, message }) => `${field}: ${message}`);
    assert.equal(lines.length, 1, lines.join('\n'));
    if (typeof problem === 'string') assert.equal(lines[0], problem);
    else assert.match(lines[0] ?? '', problem);
  });
}

test('refuses a lun that is a file', () => {
  const vmi = aVmi({ devices: { disks: [{ name: 'd', lun: {} }] } }, { volumes: [{ name: 'd' }] });
  const { problems = [] } = defineDomain(anInput(vmi));
  assert.match(
    problems.map(({ field, message }) => `${field} ${message}`).join(),
    /disks\[0\]\.lun .* is not a block device; use a directLun/,
  );
});

test('conventional interfaces have a place on i440fx', () => {
  const interfaces = (['e1000', 'rtl8139', 'virtio', 'e1000e'] as const).map((model) => ({ name: model, model }));
  const { definition } = define('pc-i440fx-7.2', { interfaces });
  const slots = definition?.devices.flatMap((device) => (device.type === 'interface' ? device.address?.['slot'] : []));
  assert.deepEqual(slots, ['0x03', '0x04', '0x05', '0x06']);
  assert.ok(!definition?.devices.some(({ type }) => type === 'root-port'));
});

test('a CD-ROM drive is the third ide unit and disks are the others, regardless of the order', () => {
  const disk = (name: string): Disk => ({ name, disk: { bus: 'ide' } });
  const disks = [disk('a'), disk('b'), disk('c'), { name: 'cd', cdrom: {} }];
  for (const order of [disks, disks.toReversed()]) {
    const at = new Map(disksOf(define('pc', { disks: order })).map(({ name, address }) => [name, address]));
    assert.deepEqual([at.get('cd')?.['bus'], at.get('cd')?.['unit']], ['1', '0']);
    assert.equal(new Set([...at.values()].map((address) => JSON.stringify(address))).size, 4);
  }
});

test('does not define an unplugged disk, which needs no medium', () => {
  const disks: Disk[] = [
    { name: 'a', plugged: false, bootOrder: 1 },
    { name: 'b', bootOrder: 1 },
  ];
  const found = disksOf(define('q35', { disks }, ['a']));
  assert.deepEqual(
    found.map(({ name }) => name),
    ['b'],
  );
});

test('leaves out an optional disk only if its medium is missing', () => {
  const disks: Disk[] = [{ name: 'a', optional: true }, { name: 'b' }];
  const names = (missing: string[]) => disksOf(define('q35', { disks }, missing)).map(({ name }) => name);
  assert.deepEqual(names(['a']), ['b']);
  assert.deepEqual(names([]), ['a', 'b']);
});

test('does not define an absent interface', () => {
  const interfaces = [{ name: 'a', state: 'absent' as const }, { name: 'b' }];
  const { definition } = define('q35', { interfaces });
  const names = definition?.devices.flatMap((device) => (device.type === 'interface' ? device.name : []));
  assert.deepEqual(names, ['b']);
});

test('keeps the place that the spec names for a missing optional disk', () => {
  const optional: Disk = { name: 'o', optional: true, disk: { pciAddress: '0000:01:00.0' } };
  const devices = { autoattachPodInterface: false, disks: [optional, { name: 'd' }] };
  const [device] = disksOf(define('q35', devices, ['o']));
  assert.deepEqual([device?.id, device?.address?.['bus']], ['disk-d', '0x02']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Chipset } from '#api/devices/chipset.ts';
import { qomAddress, learnDevices, type QomDevice } from '#node/hypervisor/qemu/devices/learn.ts';

const pci = (bus: string, slot: string, fn: string) => ({
  type: 'pci',
  domain: '0x0000',
  bus,
  slot,
  function: fn,
});
const drive = (unit: string, bus = '0') => ({ type: 'drive', controller: '0', bus, target: '0', unit });

function device(bus: string, properties: QomDevice['properties'] = {}, type = 'virtio-blk-pci'): QomDevice {
  return { id: 'x', type, bus, properties };
}

/** Paths as in QEMU 7.2. */
const addresses: Record<string, [QomDevice, object | undefined, Chipset?]> = {
  'the first root port': [device('/machine/q35/pcie.0', { addr: 0x10 }), pci('0x00', '0x02', '0x0')],
  'a root port in a later function': [device('/machine/q35/pcie.0', { addr: 0x2f }), pci('0x00', '0x05', '0x7')],
  'a device behind the first root port': [
    device('/machine/peripheral/rp0/rp0', { addr: 0 }),
    pci('0x01', '0x00', '0x0'),
  ],
  'a device behind the last root port': [
    device('/machine/peripheral/rp31/rp31', { addr: 0 }),
    pci('0x20', '0x00', '0x0'),
  ],
  'a sata disk': [device('/machine/unattached/device[15]/ide.2', { unit: 0 }), drive('2')],
  'a scsi disk': [
    device('/machine/peripheral/scsi0/virtio-backend/scsi0.0', { channel: 0, 'scsi-id': 0, lun: 255 }),
    drive('255'),
  ],
  'a device of i440fx': [device('/machine/i440fx/pci.0', { addr: 0x1a }), pci('0x00', '0x03', '0x2'), 'i440fx'],
  'the second drive on the first IDE bus': [
    device('/machine/unattached/device[17]/ide.0', { unit: 1 }),
    drive('1', '0'),
    'i440fx',
  ],
  'the first drive on the second IDE bus': [
    device('/machine/unattached/device[17]/ide.1', { unit: 0 }),
    drive('0', '1'),
    'i440fx',
  ],
  'the second floppy': [device('/machine/unattached/device[12]/floppy-bus.0', { unit: 1 }), drive('1'), 'i440fx'],
  'a port of a serial controller': [
    device('/machine/peripheral/virtio-serial2/virtio-backend/virtio-serial2.0', { nr: 3 }, 'virtserialport'),
    { type: 'virtio-serial', controller: '2', bus: '0', port: '3' },
  ],
  'a USB device behind a hub': [
    device('/machine/peripheral/usb/usb.0', { port: '1.2' }, 'usb-tablet'),
    { type: 'usb', bus: '0', port: '1.2' },
  ],
  'a serial port': [device('/machine/unattached/device[9]/isa.0'), undefined],
  'a TPM': [device(''), undefined],
};

for (const [name, [qom, want, chipset = 'q35']] of Object.entries(addresses)) {
  test(`address of ${name}`, () => assert.deepEqual(qomAddress(qom, chipset), want));
}

test('learns requested devices at the addresses that QEMU reports', () => {
  const requested = [
    {
      id: 'disk-a',
      type: 'disk',
      device: 'disk',
      name: 'a',
      bootOrder: 1,
      managed: true,
      address: pci('0x01', '0x00', '0x0'),
    },
    { id: 'disk-gone', type: 'disk', device: 'disk', name: 'gone', address: pci('0x02', '0x00', '0x0') },
  ];
  const found = [
    { id: 'disk-a', type: 'virtio-blk-pci', bus: '/machine/peripheral/rp4/rp4', properties: { addr: 0 } },
    { id: 'usb9', type: 'qemu-xhci', bus: '/machine/q35/pcie.0', properties: { addr: 0x50 } },
  ];
  assert.deepEqual(learnDevices(requested, found, 'q35'), [
    {
      id: 'disk-a',
      type: 'disk',
      device: 'disk',
      name: 'a',
      bootOrder: 1,
      managed: true,
      address: pci('0x05', '0x00', '0x0'),
    },
    { id: 'usb9', type: 'unknown', device: 'qemu-xhci', managed: false, address: pci('0x00', '0x0a', '0x0') },
  ]);
});

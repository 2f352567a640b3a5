/** A small guest with one device of most types, at the addresses of our layout. */
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import { newUid } from '#lib/ids.ts';
import type { Device, DiskDevice, DiskSource, DomainDefinition } from '#node/hardware/domain-definition.ts';

export function aDefinition(overrides: Partial<DomainDefinition> = {}): DomainDefinition {
  return {
    id: newUid(),
    name: 'default/guest',
    machine: 'pc-q35-7.2',
    cpu: { model: 'max', sockets: 1, cores: 1, threads: 1 },
    memoryKib: 64 * 1024 - 8,
    firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'S-1', loader: { type: 'bios' } },
    acpi: true,
    smm: false,
    devices: [...rootPorts(), ...devices],
    ...overrides,
  };
}

/** A virtio disk with this medium; `port` is between 2 and 7. */
export function aDisk(name: string, port: number, source: DiskSource): DiskDevice {
  return {
    type: 'disk',
    id: `disk-${name}`,
    name,
    media: 'disk',
    bus: 'virtio',
    source,
    readonly: false,
    cache: 'writeback',
    address: pci(`0x0${port}`, '0x00'),
  };
}

function rootPorts(): Device[] {
  return Array.from({ length: 8 }, (_, index) => ({
    type: 'root-port' as const,
    id: `rp${index}`,
    index,
    address: pci('0x00', '0x02', `0x${index}`),
  }));
}

const devices: readonly Device[] = [
  { type: 'scsi-controller', id: 'scsi0', address: pci('0x00', '0x06') },
  {
    type: 'interface',
    id: 'nic-default',
    name: 'default',
    model: 'virtio',
    macAddress: '02:00:00:00:00:01',
    backend: { type: 'user' },
    address: pci('0x01', '0x00'),
  },
  {
    type: 'disk',
    id: 'disk-tray',
    name: 'tray',
    media: 'cdrom',
    bus: 'sata',
    readonly: true,
    cache: 'none',
    address: { type: 'drive', controller: '0', bus: '0', target: '0', unit: '0' },
  },
  { type: 'balloon', id: 'balloon0', address: pci('0x00', '0x08') },
  { type: 'rng', id: 'rng0', address: pci('0x00', '0x09') },
  { type: 'serial', id: 'serial0' },
  {
    type: 'other',
    id: 'virtio-serial0',
    driver: 'virtio-serial-pci',
    row: { type: 'controller', device: 'virtio-serial', managed: false },
    address: pci('0x00', '0x07'),
  },
  {
    type: 'agent-channel',
    id: 'agent0',
    controller: 'virtio-serial0',
    address: { type: 'virtio-serial', controller: '0', bus: '0', port: '1' },
  },
];

function pci(bus: string, slot: string, fn = '0x0'): DeviceAddress {
  return { type: 'pci', domain: '0x0000', bus, slot, function: fn };
}

/**
 * Guests for the golden command lines (golden/*.txt): every bus, model and firmware, and devices with recorded
 * addresses.
 */
import type { DomainSpec } from '#api/domain/domain.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { KnownDevices } from '#api/devices/known-devices.ts';
import type { DefineInput } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import { HARDWARE_SPECS } from '#node/hypervisor/qemu/arguments/testing/golden-hardware.ts';
import { anInput, aVmi, someCapabilities, someMedia } from '#node/definition/testing/a-vmi.ts';

type Devices = NonNullable<DomainSpec['devices']>;

export interface Spec {
  readonly devices?: Devices;
  readonly domain?: Omit<DomainSpec, 'devices'>;
  readonly networks?: VmiSpec['networks'];
  /** Volumes that differ from the default, a writable raw file. */
  readonly media?: Readonly<Record<string, Partial<Medium>>>;
  readonly known?: KnownDevices;
  readonly input?: Partial<DefineInput>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Specs by the name of their golden file; those of i440fx begin with it. */
export const SPECS: Readonly<Record<string, Spec>> = {
  ...HARDWARE_SPECS,
  minimal: {},
  'virtio-disk': { devices: { disks: [{ name: 'root', serial: 'ROOT-1' }] } },
  'sata-disk-and-cdrom': {
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'sata' } },
        { name: 'iso', cdrom: {} },
      ],
    },
  },
  'scsi-disks': {
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'scsi' }, serial: 'ROOT-1' },
        { name: 'data', disk: { bus: 'scsi' }, cache: 'writethrough' },
      ],
    },
  },
  'scsi-cdrom': { devices: { disks: [{ name: 'iso', cdrom: { bus: 'scsi' } }] } },
  'drive-without-a-medium': { devices: { disks: [{ name: 'tray', cdrom: {} }] } },
  'read-only-disk': { devices: { disks: [{ name: 'root', disk: { readonly: true } }] } },
  'image-with-layers': {
    devices: { disks: [{ name: 'root' }] },
    media: { root: { source: { path: '/data/root.qcow2', format: 'qcow2' } } },
  },
  'block-device': {
    devices: { disks: [{ name: 'root' }] },
    media: { root: { source: { path: '/dev/loop3', format: 'raw' } } },
  },
  'disk-caches': {
    devices: {
      disks: [
        { name: 'a', cache: 'none' },
        { name: 'b', cache: 'writeback' },
        { name: 'c', cache: 'writethrough' },
        { name: 'd' },
      ],
    },
    media: { d: { cacheNone: false } },
  },
  lun: {
    devices: { disks: [{ name: 'lun', lun: {}, bootOrder: 1 }] },
    media: { lun: { source: { path: '/dev/disk/by-id/wwn-0x3600', format: 'raw' } } },
  },
  'virtio-interface': { devices: { interfaces: [nic('default', 1)] }, networks: [{ name: 'default', pod: {} }] },
  'e1000e-on-a-bridge': {
    devices: { interfaces: [{ ...nic('lan', 1), model: 'e1000e', bridge: {} }] },
    networks: [{ name: 'lan', multus: { networkName: 'br0' } }],
  },
  'several-interfaces': {
    devices: { interfaces: [nic('a', 1), nic('b', 2), nic('c', 3)] },
    networks: [
      { name: 'a', pod: {} },
      { name: 'b', multus: { networkName: 'br0' } },
      { name: 'c', multus: { networkName: 'br1' } },
    ],
  },
  'addresses-in-the-spec': {
    devices: {
      disks: [{ name: 'root', disk: { pciAddress: '0000:09:00.0' } }, { name: 'data' }],
      interfaces: [{ ...nic('default', 1), pciAddress: '0000:03:00.0' }],
    },
    networks: [{ name: 'default', pod: {} }],
  },
  'boot-order': {
    devices: {
      disks: [{ name: 'root', bootOrder: 3 }, { name: 'iso', cdrom: {}, bootOrder: 1 }, { name: 'data' }],
      interfaces: [{ ...nic('default', 1), bootOrder: 2 }],
    },
    networks: [{ name: 'default', pod: {} }],
  },
  efi: { domain: { firmware: { bootloader: { efi: { secureBoot: false } } } } },
  'secure-boot': { domain: { firmware: { bootloader: { efi: {} } } }, devices: { disks: [{ name: 'root' }] } },
  tpm: { devices: { tpm: {} } },
  'secure-boot-with-tpm': { domain: { firmware: { bootloader: { efi: {} } } }, devices: { tpm: {}, rng: {} } },
  'rng-only': { devices: { rng: {}, autoattachMemBalloon: false, autoattachSerialConsole: false } },
  'kernel-of-the-built-in-guest': {
    domain: {
      firmware: { kernelBoot: { kernelArgs: 'console=ttyS0, quiet', container: { image: 'selfsame/guest' } } },
    },
    input: { kernel: { kernelPath: '/data/vmlinuz', initrdPath: '/data/initrd' } },
  },
  'processors-with-kvm': {
    domain: { cpu: { model: 'Skylake-Server', sockets: 2, cores: 4, threads: 2 }, memory: { guest: '2Gi' } },
    input: { capabilities: someCapabilities('kvm') },
  },
  'older-machine-type': { domain: { machine: { type: 'pc-q35-6.2' } }, devices: { disks: [{ name: 'root' }] } },
  'serial-with-a-comma': { domain: { firmware: { serial: 'a,uuid=b' }, features: { acpi: { enabled: false } } } },
  'more-than-eight-ports': { devices: { disks: Array.from({ length: 9 }, (_, i) => ({ name: `d${i}` })) } },
  'unplugged-disk-and-interface': {
    devices: {
      disks: [{ name: 'root' }, { name: 'gone', plugged: false }, { name: 'data' }],
      interfaces: [nic('a', 1), { ...nic('b', 2), state: 'absent' }],
    },
    networks: [
      { name: 'a', pod: {} },
      { name: 'b', multus: { networkName: 'br0' } },
    ],
  },
  'recorded-addresses': {
    devices: {
      disks: [{ name: 'new' }, { name: 'root' }, { name: 's', disk: { bus: 'scsi' } }],
      interfaces: [nic('default', 1)],
    },
    networks: [{ name: 'default', pod: {} }],
    known: {
      machine: 'pc-q35-7.2',
      devices: [
        row('disk-root', 'disk', 'disk', pci('0x05')),
        row('disk-gone', 'disk', 'disk', pci('0x01')),
        row('disk-s', 'disk', 'disk', { type: 'drive', controller: '0', bus: '0', target: '0', unit: '9' }),
        row('nic-default', 'interface', 'virtio', pci('0x02')),
        row('scsi0', 'controller', 'virtio-scsi', pci('0x00', '0x0c')),
      ],
    },
  },
  'recorded-hardware': {
    known: {
      machine: 'pc-q35-7.2',
      devices: [
        row('video0', 'video', 'vga', pci('0x00', '0x01')),
        row('virtio-serial0', 'controller', 'virtio-serial', pci('0x00', '0x07')),
        { ...row('usb0', 'controller', 'usb', pci('0x00', '0x0a')), specParams: { model: 'qemu-xhci' } },
        row('sound0', 'sound', 'ac97', pci('0x00', '0x1b')),
        row('watchdog0', 'watchdog', 'i6300esb', pci('0x00', '0x0b')),
      ],
    },
  },
  'video-card-of-a-new-guest': { devices: { autoattachGraphicsDevice: undefined, disks: [{ name: 'root' }], rng: {} } },
  'i440fx-video-card-of-a-new-guest': {
    domain: i440fx(),
    devices: { autoattachGraphicsDevice: undefined, disks: [{ name: 'root' }] },
  },
  'i440fx-minimal': { domain: i440fx() },
  'i440fx-ide': {
    domain: i440fx(),
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'ide' }, serial: 'ROOT-1' },
        { name: 'data', disk: { bus: 'ide' } },
        { name: 'iso', cdrom: {} },
      ],
    },
  },
  'i440fx-floppies': {
    domain: i440fx(),
    devices: {
      disks: [
        { name: 'a', floppy: {}, bootOrder: 1 },
        { name: 'b', floppy: { readonly: true } },
      ],
    },
  },
  'i440fx-interfaces': {
    domain: i440fx(),
    devices: {
      interfaces: [nic('v', 1), { ...nic('e', 2), model: 'e1000' }, { ...nic('r', 3), model: 'rtl8139', bridge: {} }],
    },
    networks: [
      { name: 'v', pod: {} },
      { name: 'e', pod: {} },
      { name: 'r', multus: { networkName: 'br0' } },
    ],
  },
  'i440fx-virtio-and-scsi': {
    domain: i440fx(),
    devices: { disks: [{ name: 'root' }, { name: 's', disk: { bus: 'scsi' } }], rng: {} },
  },
  'i440fx-efi': { domain: { ...i440fx(), firmware: { bootloader: { efi: { secureBoot: false } } } } },
  'i440fx-recorded-addresses': {
    domain: i440fx(),
    devices: {
      disks: [{ name: 'new' }, { name: 'root' }, { name: 'iso', cdrom: { bus: 'ide' } }],
      interfaces: [nic('default', 1)],
    },
    networks: [{ name: 'default', pod: {} }],
    known: {
      machine: 'pc-i440fx-7.2',
      devices: [
        row('video0', 'video', 'cirrus', pci('0x00', '0x02')),
        row('nic-default', 'interface', 'virtio', pci('0x00', '0x03')),
        row('virtio-serial0', 'controller', 'virtio-serial', pci('0x00', '0x05')),
        row('disk-root', 'disk', 'disk', pci('0x00', '0x06')),
        row('disk-iso', 'disk', 'cdrom', { type: 'drive', controller: '0', bus: '1', target: '0', unit: '0' }),
        row('balloon0', 'balloon', 'memballoon', pci('0x00', '0x07')),
      ],
    },
  },
  'i440fx-imported-without-addresses': {
    domain: i440fx(),
    devices: {
      disks: [{ name: 'second' }, { name: 'first', bootOrder: 1 }, { name: 'iso', cdrom: {} }],
      interfaces: [nic('default', 1)],
    },
    networks: [{ name: 'default', pod: {} }],
    known: { devices: [{ id: 'video0', type: 'video', device: 'cirrus', managed: true }], imported: true },
  },
};

export function inputOf({ devices, domain, networks, media, known, input, annotations }: Spec): DefineInput {
  const names = (devices?.disks ?? []).filter(({ name }) => name !== 'tray').map(({ name }) => name);
  const plain = someMedia(names);
  const volumes = new Map([...plain].map(([name, medium]) => [name, { ...medium, ...media?.[name] }]));
  const firmware = { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', ...domain?.firmware };
  const vmi = aVmi(
    { ...domain, firmware, devices: { autoattachPodInterface: false, autoattachGraphicsDevice: false, ...devices } },
    {
      volumes: names.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      ...(networks !== undefined && { networks }),
    },
  );
  if (annotations !== undefined) vmi.metadata.annotations = { ...annotations };
  return anInput(vmi, { volumes, capabilities: someCapabilities('tcg'), ...(known && { known }), ...input });
}

function nic(name: string, last: number): NonNullable<Devices['interfaces']>[number] {
  return { name, macAddress: `02:00:00:00:00:0${last}` };
}

function i440fx(): Omit<DomainSpec, 'devices'> {
  return { machine: { type: 'pc' } };
}

function pci(bus: string, slot = '0x00'): DeviceAddress {
  return { type: 'pci', domain: '0x0000', bus, slot, function: '0x0' };
}

function row(id: string, type: string, device: string, address: DeviceAddress): LearnedDevice {
  return { id, type, device, address, managed: type === 'disk' || type === 'interface' };
}

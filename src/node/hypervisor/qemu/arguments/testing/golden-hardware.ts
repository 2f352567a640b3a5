/** Guests with the hardware of docs/hardware.md, for the golden command lines. */
import type { Interface } from '#api/domain/interface.ts';
import { SMBIOS_ANNOTATION } from '#api/identity/smbios-annotation.ts';
import { someCapabilities } from '#node/definition/testing/a-vmi.ts';
import type { Spec } from '#node/hypervisor/qemu/arguments/testing/golden-specs.ts';

const nic = (name: string, last: number, rest: Partial<Interface> = {}): Interface => ({
  name,
  macAddress: `02:00:00:00:00:0${last}`,
  ...rest,
});
const desktop = {
  autoattachGraphicsDevice: true,
  disks: [{ name: 'root' }, { name: 'stick', disk: { bus: 'usb' as const }, serial: 'STICK-1' }],
  inputs: [
    { name: 'pointer', type: 'tablet' as const },
    { name: 'second', type: 'tablet' as const, bus: 'virtio' as const },
  ],
  sound: { name: 'speaker' },
  watchdog: { name: 'dog', i6300esb: { action: 'poweroff' as const } },
  clientPassthrough: {},
};
const models = [
  nic('a', 1, { model: 'rtl8139' }),
  nic('b', 2, { model: 'ne2k_pci' }),
  nic('c', 3, { model: 'pcnet' }),
  nic('d', 4, { model: 'e1000' }),
  nic('e', 5, { model: 'e1000e', acpiIndex: 7 }),
  nic('f', 6, { acpiIndex: 9, state: 'down' }),
];
const i440fx = { machine: { type: 'pc' } };

export const HARDWARE_SPECS: Readonly<Record<string, Spec>> = {
  'video-virtio': { devices: { autoattachGraphicsDevice: undefined, video: { type: 'virtio' } } },
  'video-bochs-with-efi': {
    domain: { firmware: { bootloader: { efi: { secureBoot: false } } } },
    devices: { autoattachGraphicsDevice: undefined, video: { type: 'bochs' } },
  },
  desktop: { devices: desktop },
  'i440fx-desktop': {
    domain: i440fx,
    devices: { ...desktop, sound: { name: 'speaker', model: 'ac97' }, autoattachInputDevice: true, inputs: [] },
  },
  'interface-models': { devices: { interfaces: models }, networks: models.map(({ name }) => ({ name, pod: {} })) },
  'i440fx-interface-models': {
    domain: i440fx,
    devices: { interfaces: models },
    networks: models.map(({ name }) => ({ name, pod: {} })),
  },
  queues: {
    domain: { cpu: { cores: 4 } },
    devices: {
      blockMultiQueue: true,
      networkInterfaceMultiqueue: true,
      disks: [{ name: 'root' }, { name: 's', disk: { bus: 'scsi' } }],
      interfaces: [nic('lan', 1, { bridge: {} }), nic('user', 2)],
    },
    networks: [
      { name: 'lan', multus: { networkName: 'br0' } },
      { name: 'user', pod: {} },
    ],
  },
  'io-threads-shared': {
    domain: { ioThreadsPolicy: 'shared' },
    devices: { disks: [{ name: 'a' }, { name: 'b', dedicatedIOThread: true }, { name: 'c' }] },
  },
  'io-threads-auto': {
    domain: { ioThreadsPolicy: 'auto', cpu: { cores: 2 } },
    devices: { disks: ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ name, dedicatedIOThread: name === 'a' })) },
  },
  'clock-and-timers': {
    domain: {
      clock: {
        utc: { offsetSeconds: 3600 },
        timer: {
          hpet: { present: false },
          pit: { present: false, tickPolicy: 'delay' },
          rtc: { tickPolicy: 'catchup', track: 'guest' },
        },
      },
    },
  },
  'clock-in-a-timezone': { domain: { clock: { timezone: 'Asia/Kolkata' } } },
  'windows-with-kvm': {
    domain: {
      cpu: { cores: 2, features: [{ name: 'vmx', policy: 'disable' }, { name: 'invtsc' }] },
      clock: { timer: { hpet: { present: false }, pit: { tickPolicy: 'delay' }, hyperv: {}, kvm: { present: false } } },
      features: {
        hyperv: {
          ...{ relaxed: {}, vapic: {}, spinlocks: { spinlocks: 8191 }, vpindex: {}, runtime: {}, synic: {} },
          ...{ synictimer: { direct: {} }, reset: {}, vendorid: { vendorid: 'KVM Hv' }, frequencies: {} },
          ...{ reenlightenment: {}, tlbflush: {}, ipi: {}, evmcs: { enabled: false } },
        },
        kvm: { hidden: true },
        pvspinlock: { enabled: false },
      },
    },
    input: { capabilities: someCapabilities('kvm') },
  },
  'windows-emulated': {
    domain: {
      clock: { timer: { hyperv: {}, pit: { tickPolicy: 'delay' } } },
      features: { hyperv: { relaxed: {}, synictimer: {} }, kvm: { hidden: true } },
    },
  },
  'smbios-values': {
    domain: {
      firmware: { serial: 'S-1' },
      chassis: { manufacturer: 'Case, Inc.', version: '2', serial: 'C-1', asset: 'A-1', sku: 'K-1' },
    },
    annotations: {
      [SMBIOS_ANNOTATION]: JSON.stringify({
        ...{ manufacturer: 'Maker, Inc.', product: 'Machine', version: '1' },
        ...{ sku: 'K', family: 'F' },
      }),
    },
  },
};

/** Tests the rules for chipset-specific, hotpluggable and unplugged devices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf, type Configuration } from '#api/kubevirt/configuration.ts';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import { aSpec } from '#api/validation/testing/valid-objects.ts';

const OPEN: Configuration = { ...configurationOf(undefined), emulatedMachines: ['q35*', 'pc*'] };
const DEFAULT_I440FX: Configuration = { ...OPEN, defaultMachineType: 'pc-i440fx-7.2' };

interface Case {
  readonly machine?: string | null;
  readonly disks?: readonly object[];
  /** Volumes by name of the disk; an emptyDisk by default. */
  readonly contents?: Readonly<Record<string, object>>;
  readonly nics?: readonly object[];
  readonly domain?: object;
  readonly configuration?: Configuration;
  /** The errors, without the leading `spec.domain.devices.` or `spec.`; none if the spec is valid. */
  readonly want?: string[];
}

const I440FX = 'pc-i440fx-7.2';
const EMPTY = { emptyDisk: { capacity: '1Gi' } };
const HOT = { persistentVolumeClaim: { claimName: 'c', hotpluggable: true } };
const ide = (...names: string[]) => names.map((name) => ({ name, disk: { bus: 'ide' } }));
const floppies = (...names: string[]) => names.map((name) => ({ name, floppy: {} }));
const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `d${i}`, disk: { bus: 'virtio' } }));
const needs = (chipset: string, other: string, instead: string) =>
  `only possible with machine types of the chipset ${chipset}, and this one is of ${other}; use ${instead}`;
const SLOT = 'must be 0000:00:<slot>.0 with a slot from 02 to 1f (hexadecimal)';
const PORT = 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port';
const DEVICE_NAME = 'must consist of letters, digits, ".", "_", ":" and "-"';
const lun = (id: object) => ({ disks: [{ name: 'a', lun: {} }], contents: { a: { directLun: id } } });

const cases: Record<string, Case> = {
  'ide, floppies and old interface models on i440fx': {
    machine: I440FX,
    disks: [...ide('a', 'b', 'c'), { name: 'd', cdrom: { bus: 'ide' } }, ...floppies('e', 'f')],
    nics: [{ model: 'e1000' }, { model: 'rtl8139' }, { model: 'e1000e' }],
  },
  'an address for a conventional interface on q35, and too many of them': {
    nics: [{ model: 'e1000', pciAddress: '0000:01:00.0' }, ...Array.from({ length: 8 }, () => ({ model: 'pcnet' }))],
    want: [
      'interfaces[0].pciAddress: Forbidden: not supported for the model e1000 on q35, which is on the root bus; its address is assigned automatically',
      'interfaces[8].model: Invalid value: "pcnet": a q35 guest can have at most 8 interfaces of the models e1000, rtl8139, ne2k_pci and pcnet',
    ],
  },
  'ide, floppies and old interface models on q35': {
    disks: [...ide('a'), { name: 'b', cdrom: { bus: 'ide' } }, ...floppies('c')],
    nics: [{ model: 'e1000' }, { model: 'rtl8139' }],
    want: [
      `disks[0].disk.bus: Invalid value: "ide": ${needs('i440fx', 'q35', 'virtio, scsi or sata')}`,
      `disks[1].cdrom.bus: Invalid value: "ide": ${needs('i440fx', 'q35', 'virtio, scsi or sata')}`,
      `disks[2].floppy: Forbidden: ${needs('i440fx', 'q35', 'a disk or a cdrom')}`,
    ],
  },
  'a CD-ROM without a bus is on ide': { machine: I440FX, disks: [{ name: 'a', cdrom: {} }] },
  'sata on i440fx': {
    machine: 'pc',
    disks: [
      { name: 'a', disk: { bus: 'sata' } },
      { name: 'b', cdrom: { bus: 'sata' } },
    ],
    want: [
      `disks[0].disk.bus: Invalid value: "sata": ${needs('q35', 'i440fx', 'ide, scsi, or virtio for disks')}`,
      `disks[1].cdrom.bus: Invalid value: "sata": ${needs('q35', 'i440fx', 'ide, scsi, or virtio for disks')}`,
    ],
  },
  'secure boot on i440fx': {
    machine: I440FX,
    domain: { firmware: { bootloader: { efi: {} } }, features: { smm: {} } },
    want: [
      'domain.firmware.bootloader.efi.secureBoot: Invalid value: true: SecureBoot is only possible with machine types of the chipset q35; set it to false',
    ],
  },
  'EFI without secure boot on i440fx': {
    machine: I440FX,
    domain: { firmware: { bootloader: { efi: { secureBoot: false } } } },
  },
  'no machine type, with an i440fx default': { machine: null, disks: ide('a'), configuration: DEFAULT_I440FX },
  'no machine type, with the q35 default': {
    machine: '',
    disks: ide('a'),
    want: [`disks[0].disk.bus: Invalid value: "ide": ${needs('i440fx', 'q35', 'virtio, scsi or sata')}`],
  },
  'a machine type that is not allowed has no further errors': {
    machine: I440FX,
    disks: [{ name: 'a', cdrom: { bus: 'sata' } }],
    configuration: configurationOf(undefined),
    want: [
      'domain.machine.type: Invalid value: "pc-i440fx-7.2": spec.domain.machine.type is not supported: pc-i440fx-7.2 (allowed values: [q35* pc-q35*])',
    ],
  },

  'five devices on ide, including a CD-ROM': {
    machine: I440FX,
    disks: [...ide('a', 'b', 'c', 'd'), { name: 'e', cdrom: {} }],
    want: ['disks: Too many: 5: must have at most 4 items on the ide bus'],
  },
  'five devices on ide, one of them unplugged': {
    machine: I440FX,
    disks: [...ide('a', 'b', 'c', 'd'), { name: 'e', cdrom: { bus: 'ide' }, plugged: false }],
  },
  'three floppies': {
    machine: I440FX,
    disks: floppies('a', 'b', 'c'),
    want: ['disks: Too many: 3: must have at most 2 items that are floppies'],
  },
  'a read-only floppy': { machine: I440FX, disks: [{ name: 'a', floppy: { readonly: true } }] },
  'a floppy drive with an open tray': {
    machine: I440FX,
    disks: [{ name: 'a', floppy: { tray: 'open' } }],
    want: ['disks[0].floppy.tray: Forbidden: open is not supported yet'],
  },
  'a read-only disk on ide': {
    machine: I440FX,
    disks: [{ name: 'a', disk: { bus: 'ide', readonly: true } }],
    want: [
      'disks[0].disk.bus: Invalid value: "ide": ide disks are always writable; use virtio, scsi or a cdrom for read-only content',
    ],
  },
  'a disk with three kinds': {
    machine: I440FX,
    disks: [{ name: 'a', disk: {}, floppy: {}, lun: {} }],
    contents: { a: { directLun: { guid: 'x' } } },
    want: [
      'disks[0].lun: Forbidden: only one of disk and floppy and lun may be set',
      'disks[0].floppy: Forbidden: a directLun volume must be a lun or a disk',
    ],
  },

  'a LUN with a guid': lun({ guid: '3600140580e1c' }),
  'a LUN with a uuid': lun({ uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223' }),
  'a LUN without guid and uuid': {
    ...lun({}),
    want: ['volumes[0].directLun: Required value: one of guid, uuid must be set'],
  },
  'a LUN with guid and uuid': {
    ...lun({ guid: 'a', uuid: 'b' }),
    want: ['volumes[0].directLun: Forbidden: only one of guid, uuid may be set'],
  },
  'a LUN with a path': {
    ...lun({ guid: '../../etc/shadow' }),
    want: [`volumes[0].directLun.guid: Invalid value: "../../etc/shadow": ${DEVICE_NAME}`],
  },
  'a LUN with dots': {
    ...lun({ uuid: '..' }),
    want: [`volumes[0].directLun.uuid: Invalid value: "..": ${DEVICE_NAME}`],
  },
  'a LUN with an empty guid': {
    ...lun({ guid: '' }),
    want: [`volumes[0].directLun.guid: Invalid value: "": ${DEVICE_NAME}`],
  },
  'the same LUN twice': {
    disks: [
      { name: 'a', lun: {} },
      { name: 'b', disk: {} },
    ],
    contents: { a: { directLun: { guid: 'x' } }, b: { directLun: { guid: 'x' } } },
    want: ['volumes[1].directLun.guid: Duplicate value: "x"'],
  },
  'a LUN as a disk': { disks: [{ name: 'a', disk: {} }], contents: { a: { directLun: { guid: 'x' } } } },
  'a LUN in a CD-ROM drive': {
    disks: [{ name: 'a', cdrom: {} }],
    contents: { a: { directLun: { guid: 'x' } } },
    want: ['disks[0].cdrom: Forbidden: a directLun volume must be a lun or a disk'],
  },
  'a claim that is passed through': {
    disks: [{ name: 'a', lun: { bus: 'scsi' } }],
    contents: { a: { persistentVolumeClaim: { claimName: 'c' } } },
  },
  'an emptyDisk that is passed through': {
    disks: [{ name: 'a', lun: {} }],
    want: ['disks[0].lun: Forbidden: requires a directLun volume, or a claim of volume mode Block'],
  },
  'a LUN with a serial': {
    disks: [{ name: 'a', lun: {}, serial: '1' }],
    contents: { a: { directLun: { guid: 'x' } } },
    want: ['disks[0].serial: Forbidden: a LUN has the serial of its device'],
  },

  'hotpluggable volumes on scsi and virtio, as disks and as LUN': {
    disks: [
      { name: 'a', disk: { bus: 'scsi' } },
      { name: 'b', disk: {} },
      { name: 'c', lun: {} },
    ],
    contents: {
      a: HOT,
      b: { persistentVolumeClaim: { claimName: 'b', hotpluggable: true } },
      c: { persistentVolumeClaim: { claimName: 'd', hotpluggable: true } },
    },
  },
  'a hotpluggable volume on sata': {
    disks: [{ name: 'a', disk: { bus: 'sata' } }],
    contents: { a: HOT },
    want: [`disks[0].disk.bus: Invalid value: "sata": a hotpluggable volume requires bus to be 'scsi' or 'virtio'`],
  },
  'a hotpluggable volume in a CD-ROM drive': {
    disks: [{ name: 'a', cdrom: { bus: 'scsi' } }],
    contents: { a: HOT },
    want: ['disks[0].cdrom: Forbidden: a hotpluggable volume must be a disk or a lun'],
  },
  'a hotpluggable volume with a boot order': {
    disks: [{ name: 'a', disk: { bus: 'scsi' }, bootOrder: 1 }],
    contents: { a: HOT },
    want: ['disks[0].bootOrder: Forbidden: a disk with a hotpluggable volume cannot be a boot device'],
  },

  'unplugged disks and absent interfaces': {
    disks: [{ name: 'a', plugged: false, optional: true }],
    nics: [{ state: 'absent' }, { state: 'up' }],
  },
  'unplugged disks and absent interfaces with a boot order': {
    disks: [{ name: 'a', plugged: false, bootOrder: 1 }],
    nics: [{ state: 'absent', bootOrder: 2 }],
    want: [
      'disks[0].bootOrder: Forbidden: may not be set together with plugged: false',
      'interfaces[0].bootOrder: Forbidden: may not be set together with state: absent',
    ],
  },
  'unplugged virtio disks need no port': {
    disks: many(40).map((disk, i) => (i < 28 ? disk : { ...disk, plugged: false })),
  },
  'an absent interface keeps its port': {
    disks: many(28),
    nics: [{ state: 'absent' }],
    want: [
      'domain.devices: Forbidden: there are 29 interfaces and virtio disks; at most 28 are possible; use the scsi bus for disks',
    ],
  },

  'PCI addresses on i440fx': {
    machine: I440FX,
    nics: [{ pciAddress: '0000:00:02.0' }, { pciAddress: '0000:00:1F.0' }],
  },
  'invalid PCI addresses on i440fx': {
    machine: I440FX,
    nics: [{ pciAddress: '0000:00:01.0' }, { pciAddress: '0000:01:00.0' }, { pciAddress: '0000:00:03.1' }],
    want: [
      `interfaces[0].pciAddress: Invalid value: "0000:00:01.0": ${SLOT}`,
      `interfaces[1].pciAddress: Invalid value: "0000:01:00.0": ${SLOT}`,
      `interfaces[2].pciAddress: Invalid value: "0000:00:03.1": ${SLOT}`,
    ],
  },
  'a PCI address of i440fx on q35': {
    nics: [{ pciAddress: '0000:00:03.0' }],
    want: [`interfaces[0].pciAddress: Invalid value: "0000:00:03.0": ${PORT}`],
  },
  'as many virtio disks as slots': { machine: I440FX, disks: many(26) },
  'one virtio disk more than slots': {
    machine: I440FX,
    disks: many(27),
    want: [
      'domain.devices: Forbidden: there are 27 interfaces and virtio disks; at most 26 are possible; use the scsi bus for disks',
    ],
  },
};

for (const [name, one] of Object.entries(cases)) {
  const { machine = 'q35', disks = [], contents = {}, nics = [], domain = {}, configuration = OPEN, want = [] } = one;
  test(name, () => {
    const spec = aSpec({
      domain: {
        ...domain,
        machine: { type: machine },
        devices: {
          disks,
          interfaces: nics.map((nic, i) => ({ name: `n${i}`, bridge: {}, ...nic })),
          autoattachPodInterface: false,
        },
      },
      volumes: disks.map((disk) => {
        const { name: of } = disk as { name: string };
        return { name: of, ...(contents[of] ?? EMPTY) };
      }),
      networks: nics.map((_, i) => ({ name: `n${i}`, multus: { networkName: 'br0' } })),
    });
    const errors = checkInstanceSpec(spec, 'spec', configuration);
    const texts = errors.map(
      ({ field, message }) => `${field.replace(/^spec\.(?:domain\.devices\.)?/, '')}: ${message}`,
    );
    assert.deepEqual(texts, want);
  });
}

/** The rules for the spec of an instance, one sentence each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkInstanceSpec } from '#api/validation/instance-rules.ts';
import { aSpec, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';

interface Case {
  /** A merge patch on a valid spec. */
  readonly spec: unknown;
  /** What is said, without the `spec.domain.` or `spec.` that all begin with; none where it is fine. */
  readonly want?: string[];
}

const devices = (fields: object) => ({ domain: { devices: fields } });
const bootloader = (fields: unknown, more: object = {}) => ({ domain: { firmware: { bootloader: fields }, ...more } });
const volumes = (...list: object[]) => ({
  ...devices({ disks: list.map((volume) => ({ name: (volume as { name: string }).name })) }),
  volumes: list,
});
const nics = (interfaces: object[], networks: object[]) => ({ ...devices({ interfaces }), networks });
const many = (count: number, disk: object) => {
  const names = Array.from({ length: count }, (_, i) => `d${i}`);
  return {
    ...devices({ interfaces: null, autoattachPodInterface: false, disks: names.map((name) => ({ name, disk })) }),
    networks: null,
    volumes: names.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
  };
};
const e1000e = (count: number) => {
  const names = Array.from({ length: count }, (_, i) => `n${i}`);
  return nics(
    names.map((name) => ({ name, model: 'e1000e', bridge: {} })),
    names.map((name) => ({ name, multus: { networkName: 'br0' } })),
  );
};
const POD = { name: 'default', pod: {} };
const MASQUERADE = { name: 'default', masquerade: {} };
const PLACE = 'must be 0000:<bus>:00.0 with a bus from 01 to 20 (hexadecimal), which is behind a root port';
const MODEL = 'must be host-model, host-passthrough or the name of a CPU model';
const UUID = 'must be a UUID as of RFC 4122, other than the nil UUID (e.g. 5d307ca9-b3ef-428c-8861-06e72d69f223), but';
const MAC = 'must be a MAC address (e.g. 02:00:00:12:34:56)';
const WRITTEN = 'sata disks can always be written; take virtio, scsi or a cdrom for what is read-only';
const SECURE = 'has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled.';

const cases: Record<string, Case> = {
  'the valid one': { spec: {} },

  'a CPU model that QEMU knows': { spec: { domain: { cpu: { model: 'Skylake-Client-v1' } } } },
  'a CPU model that says more than its name': {
    spec: { domain: { cpu: { model: 'host,-x2apic' } } },
    want: [`cpu.model: Invalid value: "host,-x2apic": ${MODEL}`],
  },
  'too many CPUs': {
    spec: { domain: { cpu: { sockets: 16, cores: 16 } } },
    want: ['cpu: Invalid value: 256: sockets * cores * threads must be at most 255'],
  },
  'too many CPUs by what is asked of the scheduler': {
    spec: { domain: { cpu: null, resources: { requests: { cpu: '255500m' } } } },
    want: ['cpu: Invalid value: 256: sockets * cores * threads must be at most 255'],
  },

  'memory by requests only': {
    spec: { domain: { memory: null, resources: { requests: { memory: '128Mi' } } } },
  },
  'no memory at all': {
    spec: { domain: { memory: null } },
    want: [
      'memory.guest: Required value: memory.guest or resources.requests.memory says how much memory the guest has',
    ],
  },
  'so little memory that the BIOS cannot boot': {
    spec: { domain: { memory: { guest: '64Mi' } } },
    want: ['memory.guest: Invalid value: "64Mi": must be at least 72Mi, or the BIOS cannot boot'],
  },
  'so little memory that EFI cannot boot': {
    spec: bootloader({ efi: { secureBoot: false } }, { memory: { guest: '128Mi' } }),
    want: ['memory.guest: Invalid value: "128Mi": must be at least 160Mi, or EFI cannot boot'],
  },
  'more memory than the machine can address': {
    spec: { domain: { memory: { guest: '1Ti' } } },
    want: ['memory.guest: Invalid value: "1Ti": must be at most 1044480Mi'],
  },
  'more memory than its limit': {
    spec: { domain: { resources: { limits: { memory: '128Mi' } } } },
    want: ['memory.guest: Invalid value: "256Mi": must be less than or equal to memory limit'],
  },
  'requests above limits, below zero, of something else': {
    spec: { domain: { resources: { requests: { cpu: '2', memory: '-1Mi', gpu: 1 }, limits: { cpu: '1' } } } },
    want: [
      'resources.requests[memory]: Invalid value: "-1Mi": must be greater than or equal to 0',
      'resources.requests[gpu]: Unsupported value: "gpu": supported values: "cpu", "memory"',
      'resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ],
  },

  'a machine type that is allowed': { spec: { domain: { machine: { type: 'pc-q35-7.2' } } } },
  'no machine type': { spec: { domain: { machine: null } } },
  'an empty machine type': { spec: { domain: { machine: { type: '' } } } },
  'a machine type that is not allowed': {
    spec: { domain: { machine: { type: 'pc-i440fx-7.2' } } },
    want: [
      'machine.type: Invalid value: "pc-i440fx-7.2": spec.domain.machine.type is not supported: pc-i440fx-7.2 (allowed values: [q35* pc-q35*])',
    ],
  },
  'a machine type that says more than its name': {
    spec: { domain: { machine: { type: 'q35,dump-guest-core=on' } } },
    want: [
      'machine.type: Invalid value: "q35,dump-guest-core=on": spec.domain.machine.type is not supported: q35,dump-guest-core=on (allowed values: [q35* pc-q35*])',
    ],
  },

  'no firmware': { spec: { domain: { firmware: null } } },
  'a uuid that is none': {
    spec: { domain: { firmware: { uuid: 'db' } } },
    want: [`firmware.uuid: Invalid value: "db": ${UUID} has 2 hexadecimal digits instead of 32`],
  },
  'a uuid with a letter that is no digit': {
    spec: { domain: { firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f22g' } } },
    want: [
      `firmware.uuid: Invalid value: "5d307ca9-b3ef-428c-8861-06e72d69f22g": ${UUID} contains "g", which is no hexadecimal digit`,
    ],
  },
  'a uuid without dashes': {
    spec: { domain: { firmware: { uuid: '5d307ca9b3ef428c886106e72d69f223' } } },
    want: [`firmware.uuid: Invalid value: "5d307ca9b3ef428c886106e72d69f223": ${UUID} has its dashes elsewhere`],
  },
  'a uuid in capitals': { spec: { domain: { firmware: { uuid: '5D307CA9-B3EF-428C-8861-06E72D69F223' } } } },
  'the nil uuid': {
    spec: { domain: { firmware: { uuid: '00000000-0000-0000-0000-000000000000' } } },
    want: [`firmware.uuid: Invalid value: "00000000-0000-0000-0000-000000000000": ${UUID} is the nil UUID`],
  },
  'a serial of two lines': {
    spec: { domain: { firmware: { serial: 'a\nb' } } },
    want: ['firmware.serial: Invalid value: "a\\nb": must not contain control characters'],
  },
  'EFI without secure boot': { spec: bootloader({ efi: { secureBoot: false } }) },
  'EFI with secure boot and SMM': { spec: bootloader({ efi: {} }, { features: { smm: {} } }) },
  'EFI with secure boot by default': {
    spec: bootloader({ efi: {} }),
    want: [`firmware.bootloader.efi.secureBoot: Invalid value: true: spec.domain.firmware.bootloader.efi ${SECURE}`],
  },
  'EFI with secure boot and SMM switched off': {
    spec: bootloader({ efi: { secureBoot: true } }, { features: { smm: { enabled: false } } }),
    want: [`firmware.bootloader.efi.secureBoot: Invalid value: true: spec.domain.firmware.bootloader.efi ${SECURE}`],
  },
  'two boot loaders, one of them persistent': {
    spec: bootloader({ bios: {}, efi: { secureBoot: false, persistent: true } }),
    want: ['firmware.bootloader.efi: Forbidden: only one of bios and efi may be set'],
  },
  'EFI variables that outlive a restart': { spec: bootloader({ efi: { secureBoot: false, persistent: true } }) },
  'the kernel of the built-in guest': {
    spec: { domain: { firmware: { kernelBoot: { kernelArgs: 'quiet', container: { image: 'selfsame/guest' } } } } },
  },
  'the kernel of another image': {
    spec: { domain: { firmware: { kernelBoot: { container: { image: 'quay.io/x', kernelPath: '/k' } } } } },
    want: [
      'firmware.kernelBoot.container.image: Unsupported value: "quay.io/x": supported values: "selfsame/guest"',
      'firmware.kernelBoot.container.kernelPath: Forbidden: selfsame/guest brings its own kernel and initrd',
    ],
  },
  'arguments for no kernel': {
    spec: { domain: { firmware: { kernelBoot: { kernelArgs: 'quiet' } } } },
    want: [
      'firmware.kernelBoot.kernelArgs: Invalid value: "quiet": kernel arguments cannot be provided without an external kernel',
    ],
  },

  'a kernel of nothing': {
    spec: { domain: { firmware: { kernelBoot: {} } } },
    want: ['firmware.kernelBoot.container: Required value: the image that has the kernel'],
  },

  'a TPM': { spec: devices({ tpm: {} }) },
  'a persistent TPM': { spec: devices({ tpm: { persistent: true } }) },
  'volumes with the names that persistent state has': {
    spec: {
      ...devices({ disks: [{ name: 'vm-state' }, { name: 'persistent-state-for-this-vm' }] }),
      volumes: ['vm-state', 'persistent-state-for-this-vm'].map((name) => ({ name, emptyDisk: { capacity: '1Gi' } })),
    },
    want: ['vm-state', 'persistent-state-for-this-vm'].map(
      (name, i) => `volumes[${i}].name: Invalid value: "${name}": is reserved for the persistent state of the VM`,
    ),
  },
  'a video card without graphics': {
    spec: devices({ autoattachGraphicsDevice: false, video: { type: 'virtio' } }),
    want: ['devices.video: Forbidden: may not be set where autoattachGraphicsDevice is false'],
  },
  'graphics without a video card': {
    spec: devices({ autoattachGraphicsDevice: true, video: { type: 'none' } }),
    want: ['devices.video.type: Invalid value: "none": may not be none where autoattachGraphicsDevice is true'],
  },
  'no APIC': {
    spec: { domain: { features: { apic: { enabled: false } } } },
    want: ['features.apic.enabled: Forbidden: the APIC is always on'],
  },

  'no disks and no interfaces': {
    spec: { ...devices({ disks: null, interfaces: null }), networks: null, volumes: null },
  },
  'a disk without a volume, and the other way round': {
    spec: { ...devices({ disks: [{ name: 'a' }] }), volumes: [{ name: 'b', emptyDisk: { capacity: '1Gi' } }] },
    want: [
      'devices.disks[0].name: Invalid value: "a": there is no volume of this name in spec.volumes',
      'volumes[0].name: Invalid value: "b": there is no disk of this name in spec.domain.devices.disks',
    ],
  },
  'two disks of one name': {
    spec: {
      ...devices({ disks: [{ name: 'a' }, { name: 'a' }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: ['devices.disks[1].name: Duplicate value: "a"'],
  },
  'a name that is no label': {
    spec: volumes({ name: 'a.b', emptyDisk: { capacity: '1Gi' } }),
    want: [
      'devices.disks[0].name: Invalid value: "a.b": must not contain dots',
      'volumes[0].name: Invalid value: "a.b": must not contain dots',
    ],
  },
  'a disk that is two things': {
    spec: {
      ...devices({ disks: [{ name: 'a', disk: {}, cdrom: { readonly: false } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: [
      'devices.disks[0].cdrom: Forbidden: only one of disk and cdrom may be set',
      'devices.disks[0].cdrom.readonly: Forbidden: a CD-ROM is always read-only',
    ],
  },
  'an open tray': {
    spec: {
      ...devices({ disks: [{ name: 'a', cdrom: { tray: 'open' } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: ['devices.disks[0].cdrom.tray: Forbidden: open is not supported yet'],
  },
  'disks on sata that are only read': {
    spec: {
      ...devices({
        disks: [
          { name: 'a', disk: { bus: 'sata', readonly: true } },
          { name: 'b', disk: { bus: 'sata' } },
        ],
      }),
      volumes: [
        { name: 'a', emptyDisk: { capacity: 1 } },
        { name: 'b', persistentVolumeClaim: { claimName: 'b', readOnly: true } },
      ],
    },
    want: [
      `devices.disks[0].disk.bus: Invalid value: "sata": ${WRITTEN}`,
      `devices.disks[1].disk.bus: Invalid value: "sata": ${WRITTEN}`,
    ],
  },
  'a CD-ROM on sata of a claim that is only read': {
    spec: {
      ...devices({ disks: [{ name: 'a', cdrom: { bus: 'sata' } }] }),
      volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a', readOnly: true } }],
    },
  },
  'six disks on sata': { spec: many(6, { bus: 'sata' }) },
  'seven disks on sata': {
    spec: many(7, { bus: 'sata' }),
    want: ['devices.disks: Too many: 7: must have at most 6 items on the bus sata'],
  },
  'as many disks on virtio as there are ports': { spec: many(28, {}) },
  'one disk on virtio too many': {
    spec: many(29, {}),
    want: ['devices: Forbidden: interfaces and disks on the bus virtio are 29, more than 28; use the bus scsi'],
  },
  'one disk on virtio too many, as an interface comes of itself': {
    spec: { ...many(28, {}), ...devices({ ...many(28, {}).domain.devices, autoattachPodInterface: null }) },
    want: ['devices: Forbidden: interfaces and disks on the bus virtio are 29, more than 28; use the bus scsi'],
  },
  'many disks on scsi': { spec: many(100, { bus: 'scsi' }) },

  'a volume without a source': {
    spec: volumes({ name: 'a' }),
    want: [
      'volumes[0]: Required value: one of persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, directLun, configMap, secret, serviceAccount, downwardAPI must be set',
    ],
  },
  'a volume with two sources': {
    spec: volumes({ name: 'a', emptyDisk: { capacity: '1Gi' }, cloudInitNoCloud: { userData: 'x' } }),
    want: ['volumes[0]: Forbidden: only one of emptyDisk, cloudInitNoCloud may be set'],
  },
  'a claim of an impossible name': {
    spec: volumes({ name: 'a', persistentVolumeClaim: { claimName: '../b' } }),
    want: [
      `volumes[0].persistentVolumeClaim.claimName: Invalid value: "../b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ],
  },
  'an ephemeral volume of nothing': {
    spec: volumes({ name: 'a', ephemeral: {} }),
    want: ['volumes[0].ephemeral.persistentVolumeClaim: Required value'],
  },
  'an empty disk of no size': {
    spec: volumes({ name: 'a', emptyDisk: { capacity: '0' } }),
    want: ['volumes[0].emptyDisk.capacity: Invalid value: "0": must be greater than zero'],
  },
  'a claim that two disks write': {
    spec: volumes(
      { name: 'a', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'b', persistentVolumeClaim: { claimName: 'c' } },
    ),
    want: ['volumes[1].persistentVolumeClaim.claimName: Duplicate value: "c"'],
  },
  'a claim that two disks read': {
    spec: volumes(
      { name: 'a', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'b', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'd', ephemeral: { persistentVolumeClaim: { claimName: 'c' } } },
    ),
  },
  'a disk of the host that others share': {
    spec: volumes({ name: 'a', hostDisk: { path: '/srv/a.img', type: 'Disk', shared: true } }),
    want: ['volumes[0].hostDisk.shared: Forbidden: is not supported yet'],
  },
  'a disk of the host': { spec: volumes({ name: 'a', hostDisk: { path: '/srv/a.img', type: 'Disk' } }) },
  'a disk of the host somewhere': {
    spec: volumes({ name: 'a', hostDisk: { path: 'a.img', type: 'DiskOrCreate' } }),
    want: [
      'volumes[0].hostDisk.path: Invalid value: "a.img": must be the absolute path of a file',
      'volumes[0].hostDisk.capacity: Required value: how large the file is made if it is not there',
    ],
  },
  'a disk of the host that climbs': {
    spec: volumes({ name: 'a', hostDisk: { path: '/srv/../etc/shadow', type: 'Disk' } }),
    want: [`volumes[0].hostDisk.path: Invalid value: "/srv/../etc/shadow": must not contain '..'`],
  },
  'cloud-init by network data only': { spec: volumes({ name: 'a', cloudInitNoCloud: { networkData: 'x' } }) },
  'cloud-init without data': {
    spec: volumes({ name: 'a', cloudInitNoCloud: {} }),
    want: ['volumes[0].cloudInitNoCloud: Required value: one of userData, userDataBase64, secretRef must be set'],
  },
  'cloud-init with too much data, some of it broken': {
    spec: volumes({ name: 'a', cloudInitNoCloud: { userData: 'x', userDataBase64: 'geheim!' } }),
    want: [
      'volumes[0].cloudInitNoCloud: Forbidden: only one of userData, userDataBase64 may be set',
      'volumes[0].cloudInitNoCloud.userDataBase64: Invalid value: "": is not valid base64',
    ],
  },

  'an interface on a bridge': {
    spec: nics([{ name: 'lan', bridge: {} }], [{ name: 'lan', multus: { networkName: 'br0' } }]),
  },
  'an interface without a network, and the other way round': {
    spec: nics([MASQUERADE], [{ name: 'lan', pod: {} }]),
    want: [
      'devices.interfaces[0].name: Invalid value: "default": there is no network of this name in spec.networks',
      'networks[0].name: Invalid value: "lan": there is no interface of this name in spec.domain.devices.interfaces',
    ],
  },
  'an interface that is plugged in nowhere': {
    spec: nics([{ name: 'default' }], [POD]),
    want: ['devices.interfaces[0]: Required value: one of masquerade, bridge must be set'],
  },
  'an interface that is plugged in twice': {
    spec: nics([{ name: 'default', masquerade: {}, bridge: {} }], [POD]),
    want: ['devices.interfaces[0]: Forbidden: only one of masquerade, bridge may be set'],
  },
  'a bridge to the pod network': {
    spec: nics([{ name: 'default', bridge: {} }], [POD]),
    want: [
      'devices.interfaces[0].bridge: Forbidden: only possible with a multus network, which names a bridge of the node; use masquerade',
    ],
  },
  'masquerade to a bridge': {
    spec: nics([MASQUERADE], [{ name: 'default', multus: { networkName: 'br0' } }]),
    want: ['devices.interfaces[0].masquerade: Forbidden: only possible with a pod network'],
  },
  'two pod networks': {
    spec: nics([MASQUERADE, { name: 'b', masquerade: {} }], [POD, { name: 'b', pod: {} }]),
    want: [],
  },
  'a network of nothing': {
    spec: nics([MASQUERADE], [{ name: 'default' }]),
    want: ['networks[0]: Required value: one of pod, multus must be set'],
  },
  'a bridge that says more than its name': {
    spec: nics([{ name: 'lan', bridge: {} }], [{ name: 'lan', multus: { networkName: 'br0,x=y' } }]),
    want: ['networks[0].multus.networkName: Invalid value: "br0,x=y": must be the name of a bridge of the node'],
  },
  'a MAC that is none': {
    spec: nics([{ ...MASQUERADE, macAddress: '02:00' }], [POD]),
    want: [`devices.interfaces[0].macAddress: Invalid value: "02:00": ${MAC}`],
  },
  'a MAC of a group': {
    spec: nics([{ ...MASQUERADE, macAddress: '03:00:00:00:00:01' }], [POD]),
    want: [
      'devices.interfaces[0].macAddress: Invalid value: "03:00:00:00:00:01": must be a unicast MAC address: the first byte must be even',
    ],
  },
  'the zero MAC': {
    spec: nics([{ ...MASQUERADE, macAddress: '00:00:00:00:00:00' }], [POD]),
    want: ['devices.interfaces[0].macAddress: Invalid value: "00:00:00:00:00:00": must not be zero'],
  },
  'one MAC twice': {
    spec: nics(
      [
        { ...MASQUERADE, macAddress: '02:00:00:00:00:0a' },
        { name: 'lan', bridge: {}, macAddress: '02:00:00:00:00:0A' },
      ],
      [POD, { name: 'lan', multus: { networkName: 'br0' } }],
    ),
    want: ['devices.interfaces[1].macAddress: Duplicate value: "02:00:00:00:00:0A"'],
  },

  'one place in the boot order for two': {
    spec: nics([{ ...MASQUERADE, bootOrder: 1 }], [POD]),
    want: [
      'devices.interfaces[0].bootOrder: Invalid value: 1: Boot order for spec.domain.devices.interfaces[0].bootOrder already set for a different device.',
    ],
  },

  'a PCI address of an interface': { spec: nics([{ ...MASQUERADE, pciAddress: '0000:20:00.0' }], [POD]) },
  'PCI addresses where nothing can be': {
    spec: nics(
      [
        { ...MASQUERADE, pciAddress: '0000:21:00.0' },
        { name: 'lan', bridge: {}, pciAddress: '0000:00:02.0' },
      ],
      [POD, { name: 'lan', multus: { networkName: 'br0' } }],
    ),
    want: [
      `devices.interfaces[0].pciAddress: Invalid value: "0000:21:00.0": ${PLACE}`,
      `devices.interfaces[1].pciAddress: Invalid value: "0000:00:02.0": ${PLACE}`,
    ],
  },
  'eight interfaces of model e1000e': { spec: e1000e(8) },
  'nine interfaces of model e1000e': {
    spec: e1000e(9),
    want: ['devices.interfaces[8].model: Invalid value: "e1000e": a guest has room for 8 of this model'],
  },
  'ports of an interface': {
    spec: nics([{ ...MASQUERADE, ports: [{ port: 80 }] }], [POD]),
    want: [
      'devices.interfaces[0].ports: Forbidden: is not supported yet: no port of the guest can be reached from outside',
    ],
  },
  'a MAC address with dashes, and the same with colons': {
    spec: nics(
      [
        { ...MASQUERADE, macAddress: '02-00-00-00-00-0a' },
        { name: 'b', bridge: {}, macAddress: '02:00:00:00:00:0A' },
        { name: 'c', bridge: {}, macAddress: '02-00:00-00:00-0b' },
      ],
      [POD, { name: 'b', multus: { networkName: 'br0' } }, { name: 'c', multus: { networkName: 'br0' } }],
    ),
    want: [
      `devices.interfaces[2].macAddress: Invalid value: "02-00:00-00:00-0b": ${MAC}`,
      'devices.interfaces[1].macAddress: Duplicate value: "02:00:00:00:00:0A"',
    ],
  },
  'one PCI address twice': {
    spec: {
      ...devices({
        disks: [{ name: 'a', disk: { pciAddress: '0000:0a:00.0' } }],
        interfaces: [{ ...MASQUERADE, pciAddress: '0000:0A:00.0' }],
      }),
      volumes: [{ name: 'a', emptyDisk: { capacity: '1Gi' } }],
    },
    want: ['devices.disks[0].disk.pciAddress: Duplicate value: "0000:0a:00.0"'],
  },
  'a PCI address on sata': {
    spec: {
      ...devices({ disks: [{ name: 'a', disk: { bus: 'sata', pciAddress: '0000:05:00.0' } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: '1Gi' } }],
    },
    want: [
      'devices.disks[0].disk.pciAddress: Forbidden: setting a PCI address is only possible for disks on the bus virtio',
    ],
  },

  'a node selector that selects nothing': {
    spec: { nodeSelector: { zone: '-' } },
    want: [
      `nodeSelector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
    ],
  },
  'a host name with dots': {
    spec: { hostname: 'a.b' },
    want: ['hostname: Invalid value: "a.b": must not contain dots'],
  },
};

for (const [name, { spec, want = [] }] of Object.entries(cases)) {
  test(name, () => {
    const errors = checkInstanceSpec(aSpec(spec), 'spec', CONFIGURATION);
    const texts = errors.map(({ field, message }) => `${field.replace(/^spec\.(?:domain\.)?/, '')}: ${message}`);
    assert.deepEqual(texts, want);
  });
}

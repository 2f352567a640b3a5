/** Tests the rules for CPUs, memory, machine type, firmware and placement. */
import { type Case, devices, bootloader, testRules } from '#api/validation/testing/instance-spec-cases.ts';

const MODEL = 'must be host-model, host-passthrough or the name of a CPU model';
const UUID = 'must be a UUID as of RFC 4122, other than the nil UUID (e.g. 5d307ca9-b3ef-428c-8861-06e72d69f223), but';

const SECURE =
  'has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled. Set features.smm.enabled to true, or efi.secureBoot, which is true by default, to false.';

const cases: Record<string, Case> = {
  'a valid spec': { spec: {} },

  'a CPU model of QEMU': { spec: { domain: { cpu: { model: 'Skylake-Client-v1' } } } },
  'a CPU model with options': {
    spec: { domain: { cpu: { model: 'host,-x2apic' } } },
    want: [`cpu.model: Invalid value: "host,-x2apic": ${MODEL}`],
  },
  'too many CPUs': {
    spec: { domain: { cpu: { sockets: 16, cores: 16 } } },
    want: ['cpu: Invalid value: 256: sockets * cores * threads must be at most 255'],
  },
  'too many CPUs in the resource requests': {
    spec: { domain: { cpu: null, resources: { requests: { cpu: '255500m' } } } },
    want: ['cpu: Invalid value: 256: sockets * cores * threads must be at most 255'],
  },

  'memory in the resource requests only': {
    spec: { domain: { memory: null, resources: { requests: { memory: '128Mi' } } } },
  },
  'no memory': {
    spec: { domain: { memory: null } },
    want: ['memory.guest: Required value: set memory.guest or resources.requests.memory'],
  },
  'too little memory for the BIOS': {
    spec: { domain: { memory: { guest: '64Mi' } } },
    want: ['memory.guest: Invalid value: "64Mi": must be at least 72Mi, or the BIOS cannot boot'],
  },
  'too little memory for EFI': {
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
  'requests above limits, negative requests, and an unknown resource': {
    spec: { domain: { resources: { requests: { cpu: '2', memory: '-1Mi', gpu: 1 }, limits: { cpu: '1' } } } },
    want: [
      'resources.requests[memory]: Invalid value: "-1Mi": must be greater than or equal to 0',
      'resources.requests[gpu]: Unsupported value: "gpu": supported values: "cpu", "memory"',
      'resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ],
  },

  'an allowed machine type': { spec: { domain: { machine: { type: 'pc-q35-7.2' } } } },
  'no machine type': { spec: { domain: { machine: null } } },
  'an empty machine type': { spec: { domain: { machine: { type: '' } } } },
  'a machine type that is not allowed': {
    spec: { domain: { machine: { type: 'pc-i440fx-7.2' } } },
    want: [
      'machine.type: Invalid value: "pc-i440fx-7.2": spec.domain.machine.type is not supported: pc-i440fx-7.2 (allowed values: [q35* pc-q35*])',
    ],
  },
  'a machine type with options': {
    spec: { domain: { machine: { type: 'q35,dump-guest-core=on' } } },
    want: [
      'machine.type: Invalid value: "q35,dump-guest-core=on": spec.domain.machine.type is not supported: q35,dump-guest-core=on (allowed values: [q35* pc-q35*])',
    ],
  },

  'no firmware': { spec: { domain: { firmware: null } } },
  'an invalid uuid': {
    spec: { domain: { firmware: { uuid: 'db' } } },
    want: [`firmware.uuid: Invalid value: "db": ${UUID} has 2 hexadecimal digits instead of 32`],
  },
  'a uuid with an invalid character': {
    spec: { domain: { firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f22g' } } },
    want: [
      `firmware.uuid: Invalid value: "5d307ca9-b3ef-428c-8861-06e72d69f22g": ${UUID} contains "g", which is not a hexadecimal digit`,
    ],
  },
  'a uuid without dashes': {
    spec: { domain: { firmware: { uuid: '5d307ca9b3ef428c886106e72d69f223' } } },
    want: [
      `firmware.uuid: Invalid value: "5d307ca9b3ef428c886106e72d69f223": ${UUID} has its dashes in the wrong places`,
    ],
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
  'EFI with secure boot by default, without SMM': {
    spec: bootloader({ efi: {} }),
    want: [`firmware.bootloader.efi.secureBoot: Invalid value: true: spec.domain.firmware.bootloader.efi ${SECURE}`],
  },
  'EFI with secure boot and disabled SMM': {
    spec: bootloader({ efi: { secureBoot: true } }, { features: { smm: { enabled: false } } }),
    want: [`firmware.bootloader.efi.secureBoot: Invalid value: true: spec.domain.firmware.bootloader.efi ${SECURE}`],
  },
  'two boot loaders, one of them persistent': {
    spec: bootloader({ bios: {}, efi: { secureBoot: false, persistent: true } }),
    want: ['firmware.bootloader.efi: Forbidden: only one of bios and efi may be set'],
  },
  'persistent EFI variables': { spec: bootloader({ efi: { secureBoot: false, persistent: true } }) },
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
  'kernel arguments without a kernel': {
    spec: { domain: { firmware: { kernelBoot: { kernelArgs: 'quiet' } } } },
    want: [
      'firmware.kernelBoot.kernelArgs: Invalid value: "quiet": kernel arguments cannot be provided without an external kernel',
    ],
  },

  'kernelBoot without an image': {
    spec: { domain: { firmware: { kernelBoot: {} } } },
    want: ['firmware.kernelBoot.container: Required value: the image with the kernel'],
  },

  'a TPM': { spec: devices({ tpm: {} }) },
  'a persistent TPM': { spec: devices({ tpm: { persistent: true } }) },
  'volumes with reserved names': {
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
    want: ['devices.video: Forbidden: may not be set if autoattachGraphicsDevice is false'],
  },
  'graphics without a video card': {
    spec: devices({ autoattachGraphicsDevice: true, video: { type: 'none' } }),
    want: ['devices.video.type: Invalid value: "none": may not be none if autoattachGraphicsDevice is true'],
  },
  'no APIC': {
    spec: { domain: { features: { apic: { enabled: false } } } },
    want: ['features.apic.enabled: Forbidden: the APIC is always on'],
  },

  'an invalid node selector': {
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

testRules(cases);

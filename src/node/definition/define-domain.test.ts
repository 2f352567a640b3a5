import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { defineDomain, type DefineInput } from '#node/definition/define-domain.ts';
import type { Device, DomainDefinition } from '#node/hardware/domain-definition.ts';
import { anInput, aVmi, someCapabilities, someMedia, VM_UID, VMI_UID } from '#node/definition/testing/a-vmi.ts';

function defineValid(input: DefineInput): DomainDefinition {
  const { definition, problems } = defineDomain(input);
  assert.deepEqual(problems, undefined);
  return definition;
}

const devicesOf = <T extends 'disk' | 'interface'>({ devices }: DomainDefinition, type: T) =>
  devices.filter((device): device is Extract<Device, { type: T }> => device.type === type);

interface Given {
  domain?: DomainSpec;
  spec?: Omit<VmiSpec, 'domain'>;
  input?: Partial<DefineInput>;
}

const accepted: Record<string, Given & { want: Partial<DomainDefinition> }> = {
  'resolves an alias to the canonical machine type': {
    domain: { machine: { type: 'q35' } },
    want: { machine: 'pc-q35-7.2' },
  },
  'uses q35 without a machine type': {
    domain: { machine: { type: null as unknown as string } },
    want: { machine: 'pc-q35-7.2' },
  },
  'keeps a canonical machine type': { domain: { machine: { type: 'pc-q35-6.2' } }, want: { machine: 'pc-q35-6.2' } },
  'uses one processor of the host by default': {
    want: { cpu: { model: 'host', sockets: 1, cores: 1, threads: 1 } },
  },
  'uses the topology and model of the spec': {
    domain: { cpu: { sockets: 2, cores: 3, threads: 2, model: 'Skylake-Client-v1' } },
    want: { cpu: { model: 'Skylake-Client-v1', sockets: 2, cores: 3, threads: 2 } },
  },
  'converts CPU requests to sockets, rounded up': {
    domain: { resources: { requests: { cpu: '1500m', memory: '64Mi' } } },
    want: { cpu: { model: 'host', sockets: 2, cores: 1, threads: 1 } },
  },
  'prefers a topology to CPU requests': {
    domain: { cpu: { cores: 4 }, resources: { requests: { cpu: '1' } } },
    want: { cpu: { model: 'host', sockets: 1, cores: 4, threads: 1 } },
  },
  'uses the model max for host-passthrough on a node that emulates': {
    domain: { cpu: { model: 'host-passthrough' } },
    input: { capabilities: someCapabilities('tcg') },
    want: { cpu: { model: 'max', sockets: 1, cores: 1, threads: 1 }, memoryKib: 128 * 1024 - 8 },
  },
  'rounds memory down to whole MiB': { domain: { memory: { guest: '100M' } }, want: { memoryKib: 95 * 1024 } },
  'takes the memory size from the requests': {
    domain: { memory: {}, resources: { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } } },
    want: { memoryKib: 1024 * 1024 },
  },
  'takes the memory size from the limits': {
    domain: { memory: {}, resources: { limits: { memory: '2Gi' } } },
    want: { memoryKib: 2 * 1024 * 1024 },
  },
  'uses the uid of the instance as UUID if there is none': {
    want: { firmware: { uuid: VMI_UID, loader: { type: 'bios' } }, smm: false },
  },
  'defines the firmware of the spec': {
    domain: { firmware: { uuid: VM_UID, serial: 'a,b', bootloader: { efi: { secureBoot: false } } } },
    want: { firmware: { uuid: VM_UID, serial: 'a,b', loader: { type: 'efi', secureBoot: false } }, smm: false },
  },
  'enables secure boot with EFI by default, and SMM with it': {
    domain: { firmware: { bootloader: { efi: {} } } },
    want: { firmware: { uuid: VMI_UID, loader: { type: 'efi', secureBoot: true } }, smm: true },
  },
  'enables SMM without EFI': { domain: { features: { smm: {} } }, want: { smm: true } },
  'disables ACPI': { domain: { features: { acpi: { enabled: false } } }, want: { acpi: false } },
  'boots the kernel of the built-in guest': {
    domain: { firmware: { kernelBoot: { kernelArgs: 'quiet', container: { image: GUEST_IMAGE } } } },
    input: { kernel: { kernelPath: '/g/vmlinuz', initrdPath: '/g/initrd' } },
    want: { kernel: { kernelPath: '/g/vmlinuz', initrdPath: '/g/initrd', arguments: 'quiet' } },
  },
  'does not boot a kernel that the spec does not ask for': {
    input: { kernel: { kernelPath: '/g/vmlinuz' } },
    want: { kernel: undefined },
  },
};
for (const [name, { domain, spec, input, want }] of Object.entries(accepted)) {
  test(name, () => {
    const definition: Partial<DomainDefinition> = defineValid(anInput(aVmi(domain, spec), input));
    const keys = Object.keys(want) as (keyof DomainDefinition)[];
    assert.deepEqual(Object.fromEntries(keys.map((key) => [key, definition[key]])), want);
  });
}

function withMachine(name: string) {
  const capabilities = someCapabilities();
  return { ...capabilities, machines: [...capabilities.machines, { name, deprecated: false, maxCpus: 1 }] };
}

const disks = (...names: string[]) => names.map((name) => ({ name }));
const volumes = (...names: string[]) => names.map((name) => ({ name, emptyDisk: { capacity: '1Gi' } }));
const pod = (name: string) => ({ name, pod: {} });

const refused: Record<string, Given & { problem: string | RegExp }> = {
  'a machine type that the node does not have': {
    domain: { machine: { type: 'pc-q35-9.0' } },
    problem:
      'spec.domain.machine.type: Unsupported value: "pc-q35-9.0": supported values: "pc", "pc-i440fx-7.2", "pc-q35-6.2", "q35", "pc-q35-7.2"',
  },
  'a chipset without a layout': {
    domain: { machine: { type: 'microvm' } },
    input: { capabilities: withMachine('microvm') },
    problem: /^spec\.domain\.machine\.type: Unsup/,
  },
  'secure boot on i440fx': {
    domain: { machine: { type: 'pc' }, firmware: { bootloader: { efi: {} } } },
    problem: /^spec\.domain\.firmware\.bootloader\.efi\.secureBoot: Forbidden: .* secure boot needs q35$/,
  },
  'more processors than the machine has': {
    domain: { cpu: { sockets: 289 } },
    problem: 'spec.domain.cpu: Invalid value: 289: pc-q35-7.2 has at most 288 CPUs',
  },
  'a model that contains features': { domain: { cpu: { model: 'max,+vmx' } }, problem: /^spec\.domain\.cpu\.model: / },
  'no memory': { domain: { memory: {} }, problem: /^spec\.domain\.memory\.guest: Required value/ },
  'too little memory': {
    domain: { memory: { guest: '1k' } },
    problem: /^spec\.domain\.memory\.guest: .* at least 1Mi$/,
  },
  'secure boot without SMM': {
    domain: { firmware: { bootloader: { efi: {} } }, features: { smm: { enabled: false } } },
    problem: 'spec.domain.features.smm.enabled: Forbidden: may not be false: secure boot needs it',
  },
  'a kernel of the built-in guest if its files are missing': {
    domain: { firmware: { kernelBoot: { container: { image: `${GUEST_IMAGE}:1` } } } },
    problem: /kernelBoot\.container\.image: Invalid value: "selfsame\/guest:1": the files of .* are not on this node$/,
  },
  'a kernel of an unknown image': {
    domain: { firmware: { kernelBoot: { container: { image: 'registry/other' } } } },
    problem: /^spec\.domain\.firmware\.kernelBoot\.container\.image: Unsupported value: "registry\/other"/,
  },
  'a disk without its volume': {
    domain: { devices: { disks: disks('root') } },
    problem: 'spec.domain.devices.disks[0].name: Invalid value: "root": there is no volume of this name',
  },
  'one name for two disks': {
    domain: { devices: { disks: disks('root', 'root') } },
    spec: { volumes: volumes('root') },
    problem: 'spec.domain.devices.disks[1].name: Duplicate value: "root"',
  },
  'a name that is not a valid id': {
    domain: { devices: { disks: disks('a,b') } },
    spec: { volumes: volumes('a,b') },
    problem: /^spec\.domain\.devices\.disks\[0\]\.name: Invalid value: "a,b"/,
  },
  'a sata disk that is read-only': {
    domain: { devices: { disks: [{ name: 'root', disk: { bus: 'sata', readonly: true } }] } },
    spec: { volumes: volumes('root') },
    problem: /^spec\.domain\.devices\.disks\[0\]\.disk\.bus: Invalid value: "sata"/,
  },
  'a PCI address for a scsi disk': {
    domain: { devices: { disks: [{ name: 'root', disk: { bus: 'scsi', pciAddress: '0000:01:00.0' } }] } },
    spec: { volumes: volumes('root') },
    problem: /^spec\.domain\.devices\.disks\[0\]\.disk\.pciAddress: Forbidden: only disks on the virtio bus/,
  },
  'a PCI address that is not behind a port': {
    domain: { devices: { interfaces: [{ name: 'a', pciAddress: '0000:00:04.0' }] } },
    spec: { networks: [pod('a')] },
    problem:
      'spec.domain.devices.interfaces[0].pciAddress: Invalid value: "0000:00:04.0": must be one of 0000:01:00.0 to 0000:20:00.0 (slot and function are 0)',
  },
  'two devices at one PCI address': {
    domain: {
      devices: {
        interfaces: [{ name: 'a', pciAddress: '0000:05:00.0' }],
        disks: [{ name: 'root', disk: { pciAddress: '0000:05:00.0' } }],
      },
    },
    spec: { networks: [pod('a')], volumes: volumes('root') },
    problem:
      'spec.domain.devices.disks[0].disk.pciAddress: Invalid value: "0000:05:00.0": is already the address of nic-a',
  },
  'a recorded address that does not exist in the layout': {
    domain: { devices: { disks: disks('root') } },
    spec: { volumes: volumes('root') },
    input: {
      known: {
        devices: [
          {
            id: 'disk-root',
            type: 'disk',
            device: 'disk',
            address: { type: 'pci', domain: '0x0000', bus: '0x00', slot: '0x07', function: '0x0' },
          },
        ],
      },
    },
    problem: /^spec\.domain\.devices\.disks\[0\]: Invalid value: "0000:00:07\.0": the recorded address does not exist/,
  },
  'one boot order for two devices': {
    domain: { devices: { interfaces: [{ name: 'a', bootOrder: 1 }], disks: [{ name: 'root', bootOrder: 1 }] } },
    spec: { networks: [pod('a')], volumes: volumes('root') },
    problem: 'spec.domain.devices.disks[0].bootOrder: Duplicate value: 1',
  },
  'an interface without its network': {
    domain: { devices: { interfaces: [{ name: 'a', masquerade: {} }] } },
    problem: /^spec\.domain\.devices\.interfaces\[0\]\.name: Invalid value: "a": there is no network/,
  },
  'a bridge on the pod network of a node without namespaces': {
    domain: { devices: { interfaces: [{ name: 'a', bridge: {} }] } },
    spec: { networks: [pod('a')] },
    problem: /^spec\.domain\.devices\.interfaces\[0\]\.bridge: Forbidden: needs a network namespace, and root/,
  },
  'a bridge name that looks like an option of a command': {
    domain: { devices: { interfaces: [{ name: 'a', bridge: {} }] } },
    spec: { networks: [{ name: 'a', multus: { networkName: '-br0' } }] },
    problem: /^spec\.networks: Invalid value: "-br0"/,
  },
  'a multicast MAC address': {
    domain: { devices: { interfaces: [{ name: 'a', macAddress: '01:00:5e:00:00:01' }] } },
    spec: { networks: [pod('a')] },
    problem: /^spec\.domain\.devices\.interfaces\[0\]\.macAddress: Invalid value/,
  },
  'more e1000e than there are I/O ports for': {
    domain: { devices: { interfaces: Array.from({ length: 9 }, (_, i) => ({ name: `n${i}`, model: 'e1000e' })) } },
    spec: { networks: Array.from({ length: 9 }, (_, i) => pod(`n${i}`)) },
    problem: /^spec\.domain\.devices\.interfaces\[8\]\.model: Invalid value: "e1000e": a guest can have at most 8/,
  },
  'more devices than ports': {
    domain: { devices: { interfaces: Array.from({ length: 33 }, (_, i) => ({ name: `n${i}` })) } },
    spec: { networks: Array.from({ length: 33 }, (_, i) => pod(`n${i}`)) },
    problem: /^spec\.domain\.devices\.interfaces\[32\]: .* no PCI port is free: a guest has 32$/,
  },
};
for (const [name, { domain, spec, input, problem }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    const { problems = [] } = defineDomain(anInput(aVmi(domain, spec), input));
    const lines = problems.map(({ field, message }) => `${field}: ${message}`);
    assert.equal(lines.length, 1, lines.join('\n'));
    if (typeof problem === 'string') assert.equal(lines[0], problem);
    else assert.match(lines[0] ?? '', problem);
  });
}

test('returns all problems at once', () => {
  const vmi = aVmi({ machine: { type: 'microvm' }, memory: {}, devices: { disks: disks('root') } });
  assert.equal(defineDomain(anInput(vmi)).problems?.length, 3);
});

test('gives a minimal guest a scsi controller, an interface, a balloon, a console, a video card and an agent channel', () => {
  const { devices } = defineValid(anInput(aVmi()));
  const ids = devices.filter(({ type }) => type !== 'root-port').map(({ id }) => id);
  assert.deepEqual(ids, ['scsi0', 'nic-default', 'balloon0', 'serial0', 'display0', 'virtio-serial0', 'agent0']);
});

test('omits default devices that the spec disables', () => {
  const off = {
    ...{ autoattachPodInterface: false, autoattachMemBalloon: false },
    ...{ autoattachSerialConsole: false, autoattachGraphicsDevice: false },
  };
  const { devices } = defineValid(anInput(aVmi({ devices: { ...off, tpm: { enabled: false } } })));
  const ids = devices.filter(({ type }) => type !== 'root-port').map(({ id }) => id);
  assert.deepEqual(ids, ['scsi0', 'virtio-serial0', 'agent0']);
});

test('uses virtio for disks and sata for cdroms by default, and boots in the order of the spec', () => {
  const spec = { volumes: volumes('root', 'iso', 'data') };
  const list = [{ name: 'root' }, { name: 'iso', cdrom: {} }, { name: 'empty', cdrom: {} }, { name: 'data', disk: {} }];
  const found = devicesOf(defineValid(anInput(aVmi({ devices: { disks: list } }, spec))), 'disk');
  assert.deepEqual(
    found.map(({ name, bus, media, readonly, bootOrder }) => [name, bus, media, readonly, bootOrder]),
    [
      ['root', 'virtio', 'disk', false, 1],
      ['iso', 'sata', 'cdrom', true, 2],
      ['empty', 'sata', 'cdrom', true, 3],
      ['data', 'virtio', 'disk', false, 4],
    ],
  );
  assert.equal(found[2]?.source, undefined);
});

test('boots only from devices with a boot order if there are any', () => {
  const spec = { volumes: volumes('root', 'data') };
  const list = [{ name: 'root' }, { name: 'data', bootOrder: 7 }];
  const found = devicesOf(defineValid(anInput(aVmi({ devices: { disks: list } }, spec))), 'disk');
  assert.deepEqual(
    found.map(({ bootOrder }) => bootOrder),
    [undefined, 7],
  );
});

const caches: Record<string, { cache?: 'writethrough'; cacheNone?: boolean; want: string }> = {
  'bypasses the page cache by default': { want: 'none' },
  'uses the page cache if the file system needs it': { cacheNone: false, want: 'writeback' },
  'uses the cache mode of the spec': { cache: 'writethrough', cacheNone: false, want: 'writethrough' },
};
for (const [name, { cache, cacheNone, want }] of Object.entries(caches)) {
  test(name, () => {
    const vmi = aVmi({ devices: { disks: [{ name: 'root', cache }] } }, { volumes: volumes('root') });
    const [disk] = devicesOf(defineValid(anInput(vmi, { volumes: someMedia(['root'], { cacheNone }) })), 'disk');
    assert.equal(disk?.cache, want);
  });
}

test('a derived MAC address is the same at each start of a VM and different for each VM', () => {
  const macOf = (owner?: string) => devicesOf(defineValid(anInput(aVmi({}, {}, owner))), 'interface')[0]?.macAddress;
  assert.match(macOf(VM_UID) ?? '', /^02(:[0-9a-f]{2}){5}$/);
  assert.equal(macOf(VM_UID), macOf(VM_UID));
  assert.notEqual(macOf(VM_UID), macOf());
});

test('normalizes MAC addresses', () => {
  const devices = { interfaces: [{ name: 'a', macAddress: 'DE-AD-00-00-BE-EF' }] };
  const [nic] = devicesOf(defineValid(anInput(aVmi({ devices }, { networks: [pod('a')] }))), 'interface');
  assert.equal(nic?.macAddress, 'de:ad:00:00:be:ef');
});

test('maps a multus network to a bridge of the node', () => {
  const devices = { interfaces: [{ name: 'a', model: 'e1000e' as const, bridge: {} }] };
  const spec = { networks: [{ name: 'a', multus: { networkName: 'br0' } }] };
  const [nic] = devicesOf(defineValid(anInput(aVmi({ devices }, spec))), 'interface');
  assert.deepEqual(nic?.backend, { type: 'bridge', bridge: 'br0' });
});

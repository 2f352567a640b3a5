import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Domain } from '#api/domain/domain.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { defineDomain, type DefineInput } from '#node/definition/define-domain.ts';
import type { DeviceOf, DomainDefinition } from '#node/definition/domain-definition.ts';
import { anInput, aVmi, someCapabilities, someMedia, VM_UID, VMI_UID } from '#node/definition/testing/a-vmi.ts';

function defined(input: DefineInput): DomainDefinition {
  const { definition, problems } = defineDomain(input);
  assert.deepEqual(problems, undefined);
  return definition;
}

const devicesOf = <T extends 'disk' | 'interface'>({ devices }: DomainDefinition, type: T) =>
  devices.filter((device): device is DeviceOf<T> => device.type === type);

interface Given {
  domain?: Domain;
  spec?: Omit<VmiSpec, 'domain'>;
  input?: Partial<DefineInput>;
}

const good: Record<string, Given & { want: Partial<DomainDefinition> }> = {
  'an alias becomes the canonical machine type': {
    domain: { machine: { type: 'q35' } },
    want: { machine: 'pc-q35-7.2' },
  },
  'no machine type is q35': {
    domain: { machine: { type: null as unknown as string } },
    want: { machine: 'pc-q35-7.2' },
  },
  'a canonical machine type stays': { domain: { machine: { type: 'pc-q35-6.2' } }, want: { machine: 'pc-q35-6.2' } },
  'one processor of the host where nothing is said': {
    want: { cpu: { model: 'host', sockets: 1, cores: 1, threads: 1 } },
  },
  'the topology and model that are asked for': {
    domain: { cpu: { sockets: 2, cores: 3, threads: 2, model: 'Skylake-Client-v1' } },
    want: { cpu: { model: 'Skylake-Client-v1', sockets: 2, cores: 3, threads: 2 } },
  },
  'processors asked of the scheduler become sockets, rounded up': {
    domain: { resources: { requests: { cpu: '1500m', memory: '64Mi' } } },
    want: { cpu: { model: 'host', sockets: 2, cores: 1, threads: 1 } },
  },
  'a topology stands above what is asked of the scheduler': {
    domain: { cpu: { cores: 4 }, resources: { requests: { cpu: '1' } } },
    want: { cpu: { model: 'host', sockets: 1, cores: 4, threads: 1 } },
  },
  'emulation has no host to pass through': {
    domain: { cpu: { model: 'host-passthrough' } },
    input: { capabilities: someCapabilities('tcg') },
    want: { cpu: { model: 'max', sockets: 1, cores: 1, threads: 1 }, memoryKib: 128 * 1024 - 8 },
  },
  'memory is whole MiB': { domain: { memory: { guest: '100M' } }, want: { memoryKib: 95 * 1024 } },
  'memory may come from the requests': {
    domain: { memory: {}, resources: { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } } },
    want: { memoryKib: 1024 * 1024 },
  },
  'memory may come from the limits': {
    domain: { memory: {}, resources: { limits: { memory: '2Gi' } } },
    want: { memoryKib: 2 * 1024 * 1024 },
  },
  'the uuid of the instance stands in for a missing one': {
    want: { firmware: { uuid: VMI_UID, loader: { type: 'bios' } }, smm: false },
  },
  'firmware as asked for': {
    domain: { firmware: { uuid: VM_UID, serial: 'a,b', bootloader: { efi: { secureBoot: false } } } },
    want: { firmware: { uuid: VM_UID, serial: 'a,b', loader: { type: 'efi', secureBoot: false } }, smm: false },
  },
  'EFI is secure unless it is told not to be, and brings SMM': {
    domain: { firmware: { bootloader: { efi: {} } } },
    want: { firmware: { uuid: VMI_UID, loader: { type: 'efi', secureBoot: true } }, smm: true },
  },
  'SMM without EFI': { domain: { features: { smm: {} } }, want: { smm: true } },
  'ACPI is on unless disabled': { domain: { features: { acpi: { enabled: false } } }, want: { acpi: false } },
  'the built-in guest': {
    domain: { firmware: { kernelBoot: { kernelArgs: 'quiet', container: { image: GUEST_IMAGE } } } },
    input: { kernel: { kernelPath: '/g/vmlinuz', initrdPath: '/g/initrd' } },
    want: { kernel: { kernelPath: '/g/vmlinuz', initrdPath: '/g/initrd', arguments: 'quiet' } },
  },
  'a kernel is not booted only because there is one': {
    input: { kernel: { kernelPath: '/g/vmlinuz' } },
    want: { kernel: undefined },
  },
};
for (const [name, { domain, spec, input, want }] of Object.entries(good)) {
  test(name, () => {
    const definition: Partial<DomainDefinition> = defined(anInput(aVmi(domain, spec), input));
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

const bad: Record<string, Given & { problem: string | RegExp }> = {
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
  'a model that smuggles features': { domain: { cpu: { model: 'max,+vmx' } }, problem: /^spec\.domain\.cpu\.model: / },
  'no memory': { domain: { memory: {} }, problem: /^spec\.domain\.memory\.guest: Required value/ },
  'too little memory': {
    domain: { memory: { guest: '1k' } },
    problem: /^spec\.domain\.memory\.guest: .* at least 1Mi$/,
  },
  'secure boot without SMM': {
    domain: { firmware: { bootloader: { efi: {} } }, features: { smm: { enabled: false } } },
    problem: 'spec.domain.features.smm.enabled: Forbidden: may not be false: secure boot needs it',
  },
  'a kernel of the built-in guest where its files are missing': {
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
  'a name that is no id': {
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
  'a PCI address where no port is': {
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
    problem: 'spec.domain.devices.disks[0].disk.pciAddress: Invalid value: "0000:05:00.0": is the place of nic-a, too',
  },
  'a recorded address that cannot be given back': {
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
    problem: /^spec\.domain\.devices\.disks\[0\]: Invalid value: "0000:00:07\.0": the recorded address has no place/,
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
  'a bridge on the pod network': {
    domain: { devices: { interfaces: [{ name: 'a', bridge: {} }] } },
    spec: { networks: [pod('a')] },
    problem: /^spec\.domain\.devices\.interfaces\[0\]\.bridge: Forbidden: needs a multus network/,
  },
  'a bridge that is an option of a command': {
    domain: { devices: { interfaces: [{ name: 'a', bridge: {} }] } },
    spec: { networks: [{ name: 'a', multus: { networkName: '-br0' } }] },
    problem: /^spec\.networks: Invalid value: "-br0"/,
  },
  'a MAC address of a group': {
    domain: { devices: { interfaces: [{ name: 'a', macAddress: '01:00:5e:00:00:01' }] } },
    spec: { networks: [pod('a')] },
    problem: /^spec\.domain\.devices\.interfaces\[0\]\.macAddress: Invalid value/,
  },
  'more e1000e than there are I/O ports for': {
    domain: { devices: { interfaces: Array.from({ length: 9 }, (_, i) => ({ name: `n${i}`, model: 'e1000e' })) } },
    spec: { networks: Array.from({ length: 9 }, (_, i) => pod(`n${i}`)) },
    problem: /^spec\.domain\.devices\.interfaces\[8\]\.model: Invalid value: "e1000e": a guest has room for 8/,
  },
  'more devices than ports': {
    domain: { devices: { interfaces: Array.from({ length: 33 }, (_, i) => ({ name: `n${i}` })) } },
    spec: { networks: Array.from({ length: 33 }, (_, i) => pod(`n${i}`)) },
    problem: /^spec\.domain\.devices\.interfaces\[32\]: .* no PCI port is left: a guest has 32$/,
  },
};
for (const [name, { domain, spec, input, problem }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => {
    const { problems = [] } = defineDomain(anInput(aVmi(domain, spec), input));
    const lines = problems.map(({ field, message }) => `${field}: ${message}`);
    assert.equal(lines.length, 1, lines.join('\n'));
    if (typeof problem === 'string') assert.equal(lines[0], problem);
    else assert.match(lines[0] ?? '', problem);
  });
}

test('all problems are told at once', () => {
  const vmi = aVmi({ machine: { type: 'microvm' }, memory: {}, devices: { disks: disks('root') } });
  assert.equal(defineDomain(anInput(vmi)).problems?.length, 3);
});

test('a bare guest has a scsi controller, an interface, a balloon, a console, a video card and the line to its agent', () => {
  const { devices } = defined(anInput(aVmi()));
  const ids = devices.filter(({ type }) => type !== 'root-port').map(({ id }) => id);
  assert.deepEqual(ids, ['scsi0', 'nic-default', 'balloon0', 'serial0', 'display0', 'virtio-serial0', 'agent0']);
});

test('what attaches itself can be refused', () => {
  const off = {
    ...{ autoattachPodInterface: false, autoattachMemBalloon: false },
    ...{ autoattachSerialConsole: false, autoattachGraphicsDevice: false },
  };
  const { devices } = defined(anInput(aVmi({ devices: { ...off, tpm: { enabled: false } } })));
  const ids = devices.filter(({ type }) => type !== 'root-port').map(({ id }) => id);
  assert.deepEqual(ids, ['scsi0', 'virtio-serial0', 'agent0']);
});

test('disks without a kind are virtio disks, cdroms are sata, and the order of the spec boots', () => {
  const spec = { volumes: volumes('root', 'iso', 'data') };
  const list = [{ name: 'root' }, { name: 'iso', cdrom: {} }, { name: 'empty', cdrom: {} }, { name: 'data', disk: {} }];
  const found = devicesOf(defined(anInput(aVmi({ devices: { disks: list } }, spec))), 'disk');
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

test('where one device has a boot order, nothing else is booted from', () => {
  const spec = { volumes: volumes('root', 'data') };
  const list = [{ name: 'root' }, { name: 'data', bootOrder: 7 }];
  const found = devicesOf(defined(anInput(aVmi({ devices: { disks: list } }, spec))), 'disk');
  assert.deepEqual(
    found.map(({ bootOrder }) => bootOrder),
    [undefined, 7],
  );
});

const caches: Record<string, { cache?: 'writethrough'; cacheNone?: boolean; want: string }> = {
  'the page cache is passed by where it can be': { want: 'none' },
  'the page cache is used where it must be': { cacheNone: false, want: 'writeback' },
  'the spec decides on the cache': { cache: 'writethrough', cacheNone: false, want: 'writethrough' },
};
for (const [name, { cache, cacheNone, want }] of Object.entries(caches)) {
  test(name, () => {
    const vmi = aVmi({ devices: { disks: [{ name: 'root', cache }] } }, { volumes: volumes('root') });
    const [disk] = devicesOf(defined(anInput(vmi, { volumes: someMedia(['root'], { cacheNone }) })), 'disk');
    assert.equal(disk?.cache, want);
  });
}

test('a made-up MAC address is the same at each start of a VM, and another for each VM', () => {
  const macOf = (owner?: string) => devicesOf(defined(anInput(aVmi({}, {}, owner))), 'interface')[0]?.macAddress;
  assert.match(macOf(VM_UID) ?? '', /^02(:[0-9a-f]{2}){5}$/);
  assert.equal(macOf(VM_UID), macOf(VM_UID));
  assert.notEqual(macOf(VM_UID), macOf());
});

test('a MAC address is written in one way', () => {
  const devices = { interfaces: [{ name: 'a', macAddress: 'DE-AD-00-00-BE-EF' }] };
  const [nic] = devicesOf(defined(anInput(aVmi({ devices }, { networks: [pod('a')] }))), 'interface');
  assert.equal(nic?.macAddress, 'de:ad:00:00:be:ef');
});

test('a multus network is a bridge of the node', () => {
  const devices = { interfaces: [{ name: 'a', model: 'e1000e' as const, bridge: {} }] };
  const spec = { networks: [{ name: 'a', multus: { networkName: 'br0' } }] };
  const [nic] = devicesOf(defined(anInput(aVmi({ devices }, spec))), 'interface');
  assert.deepEqual(nic?.backend, { type: 'bridge', bridge: 'br0' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DiskDevice, DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { everyDevice } from '#node/definition/testing/every-device.ts';
import { fileNodeName, formatNodeName } from '#node/hypervisor/qemu/arguments/block-nodes.ts';
import { qemuArguments } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

const host: QemuHost = {
  accelerator: 'tcg',
  qmpSocket: 'qmp.sock',
  agentSocket: 'agent.sock',
  serialSocket: 'serial.sock',
  displaySocket: 'vnc.sock',
  redirectionSocket: (deviceId: string) => `${deviceId}.sock`,
  nowMs: () => Date.UTC(2026, 0, 1),
  tpmSocket: 'tpm/sock',
  nvram: 'nvram.fd',
  ovmfCode: '/usr/share/OVMF/OVMF_CODE_4M.fd',
  pathOf: (absolute) => absolute.replace('/data/', '../../volumes/'),
  tapOf: (deviceId) => `tap-${deviceId.slice(-4)}`,
};

const definition = everyDevice();

/** Returns the values of all occurrences of an option. */
function valuesOf(args: readonly string[], option: string): string[] {
  return args.flatMap((arg, i) => (arg === option ? [args[i + 1] ?? ''] : []));
}

function deviceIn(from: DomainDefinition, id: string): Record<string, unknown> {
  const devices = valuesOf(qemuArguments(from, host), '-device').map((text) => JSON.parse(text) as { id: string });
  const found = devices.find((device) => device.id === id);
  assert.ok(found !== undefined, `${id} exists`);
  return { ...found };
}

function blockdevIn(from: DomainDefinition, id: string): Record<string, unknown> {
  const nodes = valuesOf(qemuArguments(from, host), '-blockdev').map((text) => JSON.parse(text) as object);
  return { ...nodes.find((node) => 'node-name' in node && node['node-name'] === formatNodeName(id)) };
}

function diskIn({ devices: all }: DomainDefinition): DiskDevice {
  const disk = all.find((device): device is DiskDevice => device.type === 'disk');
  assert.ok(disk !== undefined);
  return disk;
}

function withDisk(overrides: Partial<DiskDevice>): DomainDefinition {
  return { ...definition, devices: [{ ...diskIn(definition), ...overrides }] };
}

function drive(unit: string, bus = '0'): Record<string, string> {
  return { type: 'drive', controller: '0', bus, target: '0', unit };
}

const devices: Record<string, { id: string; want: Record<string, unknown> }> = {
  'the first port of a slot is multifunction': {
    id: 'rp8',
    want: { driver: 'pcie-root-port', bus: 'pcie.0', addr: '0x3.0x0', chassis: 9, multifunction: true },
  },
  'the last port of a slot': {
    id: 'rp7',
    want: { driver: 'pcie-root-port', bus: 'pcie.0', addr: '0x2.0x7', chassis: 8 },
  },
  'the scsi controller': {
    id: 'scsi0',
    want: { driver: 'virtio-scsi-pci', bus: 'pcie.0', addr: '0x6.0x0', num_queues: 2 },
  },
  'a USB disk has a port on its controller': {
    id: 'disk-stick',
    want: {
      ...{ driver: 'usb-storage', bus: 'xhci0.0', port: '1', removable: false },
      ...{ drive: formatNodeName('disk-stick'), serial: 'STICK-1', 'write-cache': 'on' },
    },
  },
  'a conventional interface is on the root bus': {
    id: 'nic-pcnet',
    want: { driver: 'pcnet', bus: 'pcie.0', addr: '0xc.0x0', netdev: 'net-pcnet', mac: '02:00:00:00:00:03' },
  },
  'the video card': { id: 'display0', want: { driver: 'VGA', bus: 'pcie.0', addr: '0x1.0x0' } },
  'the watchdog': { id: 'wdt0', want: { driver: 'i6300esb', bus: 'pcie.0', addr: '0xb.0x0' } },
  'the sound card': { id: 'audio0', want: { driver: 'ich9-intel-hda', bus: 'pcie.0', addr: '0x1b.0x0' } },
  'a tablet on USB': { id: 'input-pointer', want: { driver: 'usb-tablet', bus: 'xhci0.0', port: '2' } },
  'a tablet on virtio': { id: 'input-second', want: { driver: 'virtio-tablet-pci', bus: 'pcie.0', addr: '0x10.0x0' } },
  'a redirection slot': {
    id: 'redir-3',
    want: { driver: 'usb-redir', bus: 'xhci0.0', port: '6', chardev: 'chr-redir-3' },
  },
  'a virtio disk is behind its port': {
    id: 'disk-root',
    want: {
      driver: 'virtio-blk-pci',
      bus: 'rp3',
      addr: '0x0.0x0',
      drive: formatNodeName('disk-root'),
      serial: 'ROOT-1',
      bootindex: 1,
      'num-queues': 2,
      iothread: 'iothread0',
      'write-cache': 'on',
    },
  },
  'a sata disk is on a port of the chipset': {
    id: 'disk-sata',
    want: { driver: 'ide-hd', bus: 'ide.0', unit: 0, drive: formatNodeName('disk-sata'), 'write-cache': 'on' },
  },
  'a cdrom': {
    id: 'disk-iso',
    want: { driver: 'ide-cd', bus: 'ide.1', unit: 0, drive: formatNodeName('disk-iso') },
  },
  'a drive without a medium': { id: 'disk-tray', want: { driver: 'ide-cd', bus: 'ide.2', unit: 0 } },
  'a scsi disk with a writethrough cache': {
    id: 'disk-scsi',
    want: {
      driver: 'scsi-hd',
      bus: 'scsi0.0',
      channel: 0,
      'scsi-id': 0,
      lun: 0,
      device_id: 'disk-scsi',
      drive: formatNodeName('disk-scsi'),
      'write-cache': 'off',
    },
  },
  'a virtio interface': {
    id: 'nic-default',
    want: {
      driver: 'virtio-net-pci',
      bus: 'rp0',
      addr: '0x0.0x0',
      netdev: 'net-default',
      mac: '02:00:00:00:00:01',
    },
  },
  'an e1000e interface': {
    id: 'nic-old',
    want: { driver: 'e1000e', bus: 'rp11', addr: '0x0.0x0', netdev: 'net-old', mac: '02:00:00:00:00:02' },
  },
  'the TPM': { id: 'tpm0', want: { driver: 'tpm-crb', tpmdev: 'dev-tpm0' } },
  'the rng': { id: 'rng0', want: { driver: 'virtio-rng-pci', bus: 'pcie.0', addr: '0x9.0x0', rng: 'obj-rng0' } },
  'the balloon': { id: 'balloon0', want: { driver: 'virtio-balloon-pci', bus: 'pcie.0', addr: '0x8.0x0' } },
  'the console': {
    id: 'serial0',
    want: { driver: 'isa-serial', bus: 'isa.0', index: 0, chardev: 'chr-serial0' },
  },
};
for (const [name, { id, want }] of Object.entries(devices)) {
  test(name, () => assert.deepEqual(deviceIn(definition, id), { id, ...want }));
}

const machine: Record<string, { given?: Partial<DomainDefinition>; option: string; want: string[] }> = {
  'the machine': {
    option: '-machine',
    want: ['type=pc-q35-7.2,accel=tcg,usb=off,smm=off,acpi=on,dump-guest-core=off,hpet=off'],
  },
  'memory in KiB': { option: '-m', want: ['size=262136k'] },
  'the topology': { option: '-smp', want: ['cpus=2,sockets=1,cores=2,threads=1,maxcpus=2'] },
  'commas in the serial number of the machine are escaped': {
    given: { firmware: { uuid: definition.firmware.uuid, serial: 'a,uuid=b', loader: { type: 'bios' } } },
    option: '-smbios',
    want: ['type=1,serial=a,,uuid=b'],
  },
  'no option without a serial number': {
    given: { firmware: { uuid: definition.firmware.uuid, loader: { type: 'bios' } } },
    option: '-smbios',
    want: [],
  },
  'EFI uses flash': {
    given: { firmware: { uuid: definition.firmware.uuid, loader: { type: 'efi', secureBoot: false } } },
    option: '-machine',
    want: [
      'type=pc-q35-7.2,accel=tcg,usb=off,smm=off,acpi=on,dump-guest-core=off,hpet=off,pflash0=pflash-code,pflash1=pflash-vars',
    ],
  },
  'secure boot protects the flash': {
    given: { smm: true, firmware: { uuid: definition.firmware.uuid, loader: { type: 'efi', secureBoot: true } } },
    option: '-global',
    want: ['driver=cfi.pflash01,property=secure,value=on'],
  },
  'a kernel': {
    given: { kernel: { kernelPath: '/data/k', initrdPath: '/data/i', arguments: 'a=1, b' } },
    option: '-append',
    want: ['a=1, b'],
  },
  'commas in the name are escaped': { given: { name: 'ns/a,b' }, option: '-name', want: ['guest=ns/a,,b'] },
  'user-mode and tap networks': {
    option: '-netdev',
    want: [
      'user,id=net-default',
      'tap,id=net-old,ifname=tap--old,script=no,downscript=no,vhost=off',
      ...['pcnet', 'ne2k', 'rtl', 'e1000'].map((name) => `user,id=net-${name}`),
    ],
  },
};
for (const [name, { given, option, want }] of Object.entries(machine)) {
  test(name, () => assert.deepEqual(valuesOf(qemuArguments({ ...definition, ...given }, host), option), want));
}

const policies: Record<string, { policy: DiskDevice['errorPolicy']; want: object }> = {
  'disk errors use QEMU’s default policy': { policy: undefined, want: {} },
  'disk errors are reported to the guest': { policy: 'report', want: { werror: 'enospc', rerror: 'report' } },
  'disk errors pause the guest': { policy: 'stop', want: { werror: 'stop', rerror: 'stop' } },
};
for (const [name, { policy, want }] of Object.entries(policies)) {
  test(name, () => {
    const devices = definition.devices.map((device) =>
      device.type === 'disk' && policy !== undefined ? { ...device, errorPolicy: policy } : device,
    );
    const { werror, rerror } = deviceIn({ ...definition, devices }, 'disk-root');
    assert.deepEqual({ ...(werror !== undefined && { werror }), ...(rerror !== undefined && { rerror }) }, want);
  });
}

test('the guest does not run by itself, and QEMU stays after a shutdown', () => {
  const args = qemuArguments(definition, host);
  for (const flag of ['-S', '-no-shutdown', '-nodefaults', '-no-user-config']) assert.ok(args.includes(flag), flag);
});

test('a raw file bypasses the page cache', () => {
  const shared = { 'read-only': false, cache: { direct: true, 'no-flush': false }, discard: 'unmap' };
  assert.deepEqual(blockdevIn(definition, 'disk-root'), {
    driver: 'raw',
    'node-name': formatNodeName('disk-root'),
    ...shared,
    file: {
      driver: 'file',
      'node-name': fileNodeName('disk-root'),
      filename: '../../volumes/root.img',
      ...shared,
    },
  });
});

const files: Record<string, { path: string; want: string }> = {
  'a block device uses host_device': { path: '/dev/loop3', want: 'host_device' },
  'a file in shared memory is not a block device': { path: '/dev/shm/disk.img', want: 'file' },
};
for (const [name, { path, want }] of Object.entries(files)) {
  test(name, () => {
    const { file } = blockdevIn(withDisk({ source: { path, format: 'raw' } }), 'disk-root');
    assert.equal((file as { driver: string }).driver, want);
  });
}

test('a hostile path stays a path', () => {
  const path = '/data/x",driver=nbd,"';
  const { file } = blockdevIn(withDisk({ source: { path, format: 'raw' } }), 'disk-root');
  assert.equal((file as { filename: string }).filename, '../../volumes/x",driver=nbd,"');
});

test('block nodes have valid names for ids of any length', () => {
  const id = `disk-${'x'.repeat(63)}`;
  for (const name of [formatNodeName(id), fileNodeName(id)]) assert.match(name, /^[a-z][a-z0-9-]{1,30}$/);
  assert.notEqual(formatNodeName('disk-a'), formatNodeName('disk-b'));
});

test('every device has an explicit id, bus and address', () => {
  const parsed = valuesOf(qemuArguments(definition, host), '-device').map((text) => JSON.parse(text) as object);
  // The codec of a sound card is part of the card.
  const ids = parsed.filter((device) => !('cad' in device)).map((device) => ('id' in device ? device.id : undefined));
  assert.deepEqual(
    ids,
    definition.devices.map(({ id }) => id),
  );
  for (const device of parsed) assert.ok('bus' in device || 'tpmdev' in device, JSON.stringify(device));
});

const onI440fx: Record<string, { given: Partial<DiskDevice>; want: Record<string, unknown> | RegExp }> = {
  'a virtio disk is directly on the bus': {
    given: { address: { ...diskIn(definition).address, bus: '0x00', slot: '0x07' } },
    want: { driver: 'virtio-blk-pci', bus: 'pci.0', addr: '0x7.0x0' },
  },
  'an IDE disk has a bus and a unit': {
    given: { bus: 'ide', address: drive('1', '1') },
    want: { driver: 'ide-hd', bus: 'ide.1', unit: 1 },
  },
  'a floppy has neither a serial number nor a boot order': {
    given: { bus: 'fdc', media: 'floppy', address: drive('1') },
    want: { driver: 'floppy', bus: 'floppy-bus.0', unit: 1, serial: undefined, bootindex: undefined },
  },
  'a LUN has no serial number from us': {
    given: { bus: 'scsi', media: 'lun', address: drive('4') },
    want: { driver: 'scsi-block', bus: 'scsi0.0', lun: 4, serial: undefined, device_id: undefined, bootindex: 1 },
  },
  'root ports do not exist': { given: {}, want: /is behind a root port/ },
  'SATA does not exist': { given: { bus: 'sata', address: drive('0') }, want: /SATA controller of q35/ },
  'a disk on a controller needs a unit': { given: { bus: 'ide', address: {} }, want: /has a drive address/ },
};
for (const [name, { given, want }] of Object.entries(onI440fx)) {
  test(`i440fx: ${name}`, () => {
    const guest = { ...withDisk(given), machine: 'pc-i440fx-7.2' };
    if (want instanceof RegExp) {
      assert.throws(() => qemuArguments(guest, host), want);
      return;
    }
    const device = deviceIn(guest, 'disk-root');
    for (const [key, value] of Object.entries(want)) assert.deepEqual(device[key], value, key);
  });
}

test('the boot order of a floppy is set on its controller', () => {
  const floppy = { ...withDisk({ bus: 'fdc', media: 'floppy', address: drive('1') }), machine: 'pc-i440fx-7.2' };
  const args = qemuArguments(floppy, host);
  assert.deepEqual(valuesOf(args, '-global'), ['driver=isa-fdc,property=bootindexB,value=1']);
});

test('IDE and floppies on q35 violate an invariant', () => {
  for (const bus of ['ide', 'fdc'] as const) {
    assert.throws(() => qemuArguments(withDisk({ bus, address: drive('0') }), host), /controller of i440fx/);
  }
});

test('a device behind a port but not in its first slot violates an invariant', () => {
  const nic = definition.devices.find((device): device is InterfaceDevice => device.type === 'interface');
  const stray = { ...nic!, address: { ...nic!.address, slot: '0x01' } };
  assert.throws(() => qemuArguments({ ...definition, devices: [stray] }, host), /is behind a root port/);
});

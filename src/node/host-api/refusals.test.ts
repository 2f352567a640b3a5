import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostVerb } from '#api/host-api.ts';
import { aVm, startHostScene, VM_ID, type HostScene } from '#node/host-api/testing/host-scene.ts';

interface Case {
  verb?: HostVerb;
  /** Instead of what a good call has, or besides it. */
  with?: (scene: HostScene) => Record<string, unknown>;
  want: RegExp | string;
}

const disk = (more: Record<string, unknown> = {}) => ({ type: 'disk', device: 'disk', ...more });
const devices = (...list: unknown[]) => ({ devices: list });
const pci = (slot: string, bus = '0x00') => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
const FAILED = '9 Error creating the requested virtual machine: ';

const cases: Record<string, Case> = {
  'a VM without memory': { with: () => ({ memSize: 0 }), want: '11 Missing required parameter: memSize' },
  'a VM without anything': {
    with: () => ({ vmId: undefined, memSize: undefined, display: '' }),
    want: '11 Missing required parameter: vmId, memSize, display',
  },
  'an id that is none': { with: () => ({ vmId: '../x' }), want: `${FAILED}vmId: "../x" is no UUID` },
  'every fault at once': {
    with: () => ({ memSize: 'much', smp: '3', smpCoresPerSocket: 2, boot: 'x', devices: 'none' }),
    want: new RegExp(
      [
        `^${FAILED}memSize: "much"; expected a whole number of MiB`,
        'boot: "x" is no boot order; .*',
        'smp: 3 CPUs are no whole number of sockets of 2 cores with 1 threads',
        'devices: expected a list of at most 200 devices$',
      ].join('; '),
    ),
  },
  'a machine type that this host does not have': {
    with: () => ({ emulatedMachine: 'rhel6.2.0', devices: [] }),
    want: /^9 .*: emulatedMachine: Unsupported value: "rhel6.2.0": supported values: .*"pc-i440fx-7.2"/,
  },
  'a machine type that nobody knows, with that fault alone': {
    with: (scene) => ({
      emulatedMachine: 'rhel6.2.0',
      floppy: scene.image('w.vfd'),
      drives: ['a', 'b', 'c'].map((name) => ({ if: 'ide', path: scene.image(name) })),
    }),
    want: /^9 [^;]*: emulatedMachine: Unsupported value: "rhel6.2.0": supported values: [^;]*$/,
  },
  'a machine type that this host does not have, and what its chipset does not have either': {
    with: (scene) => ({
      emulatedMachine: 'pc-q35-99.9',
      devices: [disk({ iface: 'ide', path: scene.image('a.img') })],
    }),
    want: /^9 .*: emulatedMachine: Unsupported value: "pc-q35-99.9": .*; devices\[0\]: Invalid value: "ide"/,
  },
  'a machine type that nobody knows, and what no machine can be': {
    with: (scene) => ({
      emulatedMachine: 'rhel6.2.0',
      devices: [disk({ path: scene.image('a.img') }), { type: 'interface', device: 'bridge', macAddr: 'x' }],
    }),
    want: /^9 .*: emulatedMachine: [^;]*; devices\[1\]: Invalid value: "x": is no MAC address of an interface$/,
  },
  'a CPU with an option behind it': {
    with: () => ({ cpuType: 'Nehalem,+vmx', devices: [] }),
    want: /^9 .*: cpuType: Invalid value: "Nehalem,\+vmx": is no name of a CPU model$/,
  },
  'a device without a type': {
    with: () => devices({ device: 'disk' }),
    want: `${FAILED}devices[0].type: nothing; expected a word`,
  },
  'a disk of an unknown sort': {
    with: () => devices(disk({ device: 'tape' })),
    want: `${FAILED}devices[0].device: "tape"; expected one of disk, cdrom, lun, floppy`,
  },
  'a disk on an unknown bus': {
    with: () => devices(disk({ iface: '__proto__' })),
    want: `${FAILED}devices[0].iface: "__proto__"; expected one of virtio, scsi, sata, ide for a disk`,
  },
  'a disk without anything in it': {
    with: () => devices(disk()),
    want: `${FAILED}devices[0]: nothing is in it; expected a path, the ids of a volume, a GUID or a UUID`,
  },
  'a disk that is not there': {
    with: () => devices(disk({ path: 'a.img' })),
    want: /^9 .*: devices\[0\]: Cannot use image ".*\/host-images\/a.img": there is none$/,
  },
  'a disk of another format': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), format: 'vmdk' })),
    want: `${FAILED}devices[0].format: "vmdk"; expected raw or cow`,
  },
  'one file in two disks': {
    with: (scene) => devices(disk({ path: scene.image('a.img') }), disk({ path: 'a.img' })),
    want: `${FAILED}devices[1]: what is in it is in devices[0], too`,
  },
  'a shared disk that can be written': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), shared: 'true' })),
    want: `${FAILED}devices[0].shared: "true"; only disks that are read-only can be shared`,
  },
  'a LUN that the machine does not have': {
    with: () => devices(disk({ device: 'lun', GUID: '3600' })),
    want: `${FAILED}devices[0]: Cannot use LUN "3600": this node has no such block device`,
  },
  'a sata disk in a machine of old': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), iface: 'sata' })),
    want: /^9 .*: devices\[0\]: Invalid value: "sata": i440fx machines have no SATA controller/,
  },
  'two devices of one id': {
    with: () =>
      devices({ type: 'tpm', device: 'tpm', deviceId: 'x' }, { type: 'rng', device: 'virtio', deviceId: 'x' }),
    want: `${FAILED}devices[1].deviceId: "x" is that of another device, too`,
  },
  'two of what a guest has one of': {
    with: () => devices({ type: 'balloon', device: 'memballoon' }, { type: 'balloon', device: 'memballoon' }),
    want: `${FAILED}devices[1]: a guest has one memballoon at most`,
  },
  'an address that is none': {
    with: () => devices({ type: 'rng', device: 'virtio', address: 'pci' }),
    want: `${FAILED}devices[0].address: "pci"; expected a map of texts, or '' where it is unknown`,
  },
  'two devices at one address': {
    with: () => {
      const nic = { type: 'interface', device: 'bridge', address: pci('0x05') };
      return devices(nic, nic);
    },
    want: /^9 .*: devices\[1\]: Invalid value: "0000:00:05.0": the record has nic-net0 in the place of nic-net1, too$/,
  },
  'an address that the machine does not have': {
    with: () => devices({ type: 'interface', device: 'bridge', address: pci('0x05', '0x03') }),
    want: /^9 .*: devices\[0\]: Invalid value: "0000:03:05.0": the recorded address has no place/,
  },
  'an address that would not be kept': {
    with: () => devices({ type: 'balloon', device: 'memballoon', address: pci('0x05', '0x03') }),
    want: /^9 .*: devices\[0\].address: 0000:03:05.0 is no place for it in this machine; it would be 0000:00:03.0$/,
  },
  'a model that we do not have': {
    with: () => devices({ type: 'interface', device: 'bridge', nicModel: 'ne2k' }),
    want: `${FAILED}devices[0].nicModel: "ne2k"; expected one of pv, virtio, e1000e, e1000, rtl8139, ne2k_pci, pcnet`,
  },
  'a MAC address that is none': {
    with: () => devices({ type: 'interface', device: 'bridge', macAddr: 'x' }),
    want: /^9 .*: devices\[0\]: Invalid value: "x": is no MAC address of an interface$/,
  },
  'a kernel elsewhere': {
    with: () => ({ devices: [], kernel: '/boot/vmlinuz' }),
    want: /^9 .*: kernel: path "\/boot\/vmlinuz" is no file below /,
  },
  'parameters that go down for ever': {
    with: () => {
      let deep: unknown = 1;
      for (let i = 0; i < 20; i++) deep = [deep];
      return { custom: deep };
    },
    want: `${FAILED}the parameters are too deep`,
  },
  'more than anybody needs to say': {
    with: () => ({ note: 'x'.repeat(300_000) }),
    want: /^9 .*: the parameters have \d+ bytes; expected at most 262144$/,
  },
  'a list of what is no list': {
    verb: 'list',
    with: () => ({ vmList: 'all' }),
    want: '16 Unexpected exception: vmList: "all" is no list of ids',
  },
  'a disk for no VM': {
    verb: 'hotplugDisk',
    with: () => ({ drive: {} }),
    want: `1 Virtual machine does not exist: vmId "${VM_ID}"`,
  },
  'a call without an id': { verb: 'destroy', with: () => ({ vmId: '' }), want: '11 Missing required parameter: vmId' },
};

for (const [name, { verb = 'create', with: more = () => ({}), want }] of Object.entries(cases)) {
  test(`refuses ${name}`, async (t) => {
    const scene = await startHostScene(t);
    const status = await scene.status(verb, { ...aVm, ...more(scene) });
    if (typeof want === 'string') assert.equal(status, want);
    else assert.match(status, want);
    assert.deepEqual(scene.hypervisor().list(), []);
  });
}

const running: Record<string, Case & { verb: HostVerb }> = {
  'a disk without a drive': { verb: 'hotplugDisk', want: '11 Missing required parameter: drive' },
  'a drive that is none': {
    verb: 'hotplugDisk',
    with: () => ({ drive: 'sda' }),
    want: '45 Failed to hot-plug disk: drive: "sda" is no map',
  },
  'a disk on ide': {
    verb: 'hotplugDisk',
    with: (scene) => ({ drive: { iface: 'ide', path: scene.image('b.img') } }),
    want: /^45 .*: drive: a disk on the bus ide needs a restart/,
  },
  'a disk that is in the guest': {
    verb: 'hotplugDisk',
    with: () => ({ drive: { path: 'a.img' } }),
    want: '45 Failed to hot-plug disk: drive: it is plugged in already, as disk-virtio0',
  },
  'an optional disk that is not there': {
    verb: 'hotplugDisk',
    with: () => ({ drive: { path: 'none.img', optional: 'true' } }),
    want: /^45 .*there is none$/,
  },
  'a place that is taken': {
    verb: 'hotplugNic',
    with: () => ({ nic: { address: pci('0x02') } }),
    want: '49 Failed to hot-plug NIC: nic.address: 0000:00:02.0 is taken, or no place for it in the running guest',
  },
  'a MAC address that is in the guest': {
    verb: 'hotplugNic',
    with: () => ({ nic: { macAddr: '02:00:00:00:00:AA' } }),
    want: '49 Failed to hot-plug NIC: nic: it is plugged in already, as nic-net0',
  },
  'a disk that is not in the guest': {
    verb: 'hotunplugDisk',
    with: () => ({ drive: { path: 'b.img' } }),
    want: '46 Failed to hot-unplug disk: drive: {"path":"b.img"} is not in the guest',
  },
  'a drive that never goes': {
    verb: 'hotunplugDisk',
    with: () => ({ drive: { path: 'c.iso' } }),
    want: /^46 .*: drive: Cannot unplug "disk-ide2" of domain .* the device does not support hotplug$/,
  },
  'a network card that is not in the guest': {
    verb: 'hotunplugNic',
    with: () => ({ nic: { macAddr: '02:00:00:00:00:bb' } }),
    want: '50 Failed to hot-unplug NIC: nic: {"macAddr":"02:00:00:00:00:bb"} is not in the guest',
  },
};

for (const [name, { verb, with: more = () => ({}), want }] of Object.entries(running)) {
  test(`refuses, of a VM that runs, ${name}`, async (t) => {
    const scene = await startHostScene(t);
    scene.image('a.img');
    scene.image('c.iso');
    const nic = { type: 'interface', device: 'bridge', macAddr: '02:00:00:00:00:aa' };
    const list = [disk({ path: 'a.img' }), disk({ device: 'cdrom', path: 'c.iso' }), nic];
    assert.equal(await scene.status('create', { ...aVm, devices: list }), '0 Done');
    const before = await scene.vm();
    const status = await scene.status(verb, { vmId: VM_ID, ...more(scene) });
    if (typeof want === 'string') assert.equal(status, want);
    else assert.match(status, want);
    assert.deepEqual(await scene.vm(), before);
  });
}

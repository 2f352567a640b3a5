import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostVerb } from '#api/host-api.ts';
import { aVm, startHostScene, VM_ID, type HostScene } from '#node/host-api/testing/host-scene.ts';

interface Case {
  verb?: HostVerb;
  /** Overrides the parameters of a valid call. */
  with?: (scene: HostScene) => Record<string, unknown>;
  want: RegExp | string;
}

const disk = (more: Record<string, unknown> = {}) => ({ type: 'disk', device: 'disk', ...more });
const devices = (...list: unknown[]) => ({ devices: list });
const pci = (slot: string, bus = '0x00') => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
const FAILED = '9 Error creating the requested virtual machine: ';

const cases: Record<string, Case> = {
  'a VM without memory': { with: () => ({ memSize: 0 }), want: '11 Missing required parameter: memSize' },
  'a VM without any required parameter': {
    with: () => ({ vmId: undefined, memSize: undefined, display: '' }),
    want: '11 Missing required parameter: vmId, memSize, display',
  },
  'an id that is not a UUID': { with: () => ({ vmId: '../x' }), want: `${FAILED}vmId: "../x"; expected a UUID` },
  'several errors at once': {
    with: () => ({ memSize: 'much', smp: '3', smpCoresPerSocket: 2, boot: 'x', devices: 'none' }),
    want: new RegExp(
      [
        `^${FAILED}memSize: "much"; expected a whole number of MiB`,
        'boot: "x"; expected c .*',
        'smp: 3 CPUs; expected a multiple of 2 cores with 1 threads',
        'devices: expected a list of at most 200 devices$',
      ].join('; '),
    ),
  },
  'a machine type that this host does not have': {
    with: () => ({ emulatedMachine: 'rhel6.2.0', devices: [] }),
    want: /^9 .*: emulatedMachine: Unsupported value: "rhel6.2.0": supported values: .*"pc-i440fx-7.2"/,
  },
  'an unknown machine type, without errors that depend on its chipset': {
    with: (scene) => ({
      emulatedMachine: 'rhel6.2.0',
      floppy: scene.image('w.vfd'),
      drives: ['a', 'b', 'c'].map((name) => ({ if: 'ide', path: scene.image(name) })),
    }),
    want: /^9 [^;]*: emulatedMachine: Unsupported value: "rhel6.2.0": supported values: [^;]*$/,
  },
  'a machine type that this host does not have, and devices that its chipset does not have': {
    with: (scene) => ({
      emulatedMachine: 'pc-q35-99.9',
      devices: [disk({ iface: 'ide', path: scene.image('a.img') })],
    }),
    want: /^9 .*: emulatedMachine: Unsupported value: "pc-q35-99.9": .*; devices\[0\]: Invalid value: "ide"/,
  },
  'an unknown machine type, and values that no machine accepts': {
    with: (scene) => ({
      emulatedMachine: 'rhel6.2.0',
      devices: [disk({ path: scene.image('a.img') }), { type: 'interface', device: 'bridge', macAddr: 'x' }],
    }),
    want: /^9 .*: emulatedMachine: [^;]*; devices\[1\]: Invalid value: "x": is not a valid MAC address of an interface$/,
  },
  'a CPU model with an option': {
    with: () => ({ cpuType: 'Nehalem,+vmx', devices: [] }),
    want: /^9 .*: cpuType: Invalid value: "Nehalem,\+vmx": is not a valid name of a CPU model$/,
  },
  'a device without a type': {
    with: () => devices({ device: 'disk' }),
    want: `${FAILED}devices[0].type: nothing; expected a word`,
  },
  'a disk of an unknown kind': {
    with: () => devices(disk({ device: 'tape' })),
    want: `${FAILED}devices[0].device: "tape"; expected one of disk, cdrom, lun, floppy`,
  },
  'a disk on an unknown bus': {
    with: () => devices(disk({ iface: '__proto__' })),
    want: `${FAILED}devices[0].iface: "__proto__"; expected one of virtio, scsi, sata, ide for a disk`,
  },
  'a disk without a source': {
    with: () => devices(disk()),
    want: `${FAILED}devices[0]: the disk has no source; expected a path, the ids of a volume, a GUID or a UUID`,
  },
  'a disk that does not exist': {
    with: () => devices(disk({ path: 'a.img' })),
    want: /^9 .*: devices\[0\]: Cannot use image ".*\/host-images\/a.img": it does not exist$/,
  },
  'a disk of another format': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), format: 'vmdk' })),
    want: `${FAILED}devices[0].format: "vmdk"; expected raw or cow`,
  },
  'one file in two disks': {
    with: (scene) => devices(disk({ path: scene.image('a.img') }), disk({ path: 'a.img' })),
    want: `${FAILED}devices[1]: its source is already used by devices[0]`,
  },
  'a shared disk that can be written': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), shared: 'true' })),
    want: `${FAILED}devices[0].shared: "true"; only read-only disks can be shared`,
  },
  'a LUN that the machine does not have': {
    with: () => devices(disk({ device: 'lun', GUID: '3600' })),
    want: `${FAILED}devices[0]: Cannot use LUN "3600": this node has no such block device`,
  },
  'a sata disk in an i440fx machine': {
    with: (scene) => devices(disk({ path: scene.image('a.img'), iface: 'sata' })),
    want: /^9 .*: devices\[0\]: Invalid value: "sata": i440fx machines have no SATA controller/,
  },
  'two devices with the same id': {
    with: () =>
      devices({ type: 'tpm', device: 'tpm', deviceId: 'x' }, { type: 'rng', device: 'virtio', deviceId: 'x' }),
    want: `${FAILED}devices[1].deviceId: "x" is already used by another device`,
  },
  'two devices of a type of which a guest has at most one': {
    with: () => devices({ type: 'balloon', device: 'memballoon' }, { type: 'balloon', device: 'memballoon' }),
    want: `${FAILED}devices[1]: a guest has at most one memballoon`,
  },
  'an address that is not a map': {
    with: () => devices({ type: 'rng', device: 'virtio', address: 'pci' }),
    want: `${FAILED}devices[0].address: "pci"; expected a map of strings, or '' if it is unknown`,
  },
  'two devices at one address': {
    with: () => {
      const nic = { type: 'interface', device: 'bridge', address: pci('0x05') };
      return devices(nic, nic);
    },
    want: /^9 .*: devices\[1\]: Invalid value: "0000:00:05.0": the record has both nic-net0 and nic-net1 at this address$/,
  },
  'an address that the machine does not have': {
    with: () => devices({ type: 'interface', device: 'bridge', address: pci('0x05', '0x03') }),
    want: /^9 .*: devices\[0\]: Invalid value: "0000:03:05.0": the recorded address does not exist/,
  },
  'an address that the device would not get': {
    with: () => devices({ type: 'balloon', device: 'memballoon', address: pci('0x05', '0x03') }),
    want: /^9 .*: devices\[0\].address: this machine cannot have it at 0000:03:05.0; it would be at 0000:00:03.0$/,
  },
  'a model that this host does not have': {
    with: () => devices({ type: 'interface', device: 'bridge', nicModel: 'ne2k' }),
    want: `${FAILED}devices[0].nicModel: "ne2k"; expected one of pv, virtio, e1000e, e1000, rtl8139, ne2k_pci, pcnet`,
  },
  'an invalid MAC address': {
    with: () => devices({ type: 'interface', device: 'bridge', macAddr: 'x' }),
    want: /^9 .*: devices\[0\]: Invalid value: "x": is not a valid MAC address of an interface$/,
  },
  'a kernel outside of host-images': {
    with: () => ({ devices: [], kernel: '/boot/vmlinuz' }),
    want: /^9 .*: kernel: path "\/boot\/vmlinuz" is not a file below /,
  },
  'parameters that are nested too deeply': {
    with: () => {
      let deep: unknown = 1;
      for (let i = 0; i < 20; i++) deep = [deep];
      return { custom: deep };
    },
    want: `${FAILED}the parameters are nested too deeply`,
  },
  'parameters that are too large': {
    with: () => ({ note: 'x'.repeat(300_000) }),
    want: /^9 .*: the parameters have \d+ bytes; expected at most 262144$/,
  },
  'a vmList that is not a list': {
    verb: 'list',
    with: () => ({ vmList: 'all' }),
    want: '16 Unexpected exception: vmList: "all"; expected a list of ids',
  },
  'a disk for an unknown VM': {
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
  'a drive that is not a map': {
    verb: 'hotplugDisk',
    with: () => ({ drive: 'sda' }),
    want: '45 Failed to hot-plug disk: drive: "sda"; expected a map',
  },
  'a disk on ide': {
    verb: 'hotplugDisk',
    with: (scene) => ({ drive: { iface: 'ide', path: scene.image('b.img') } }),
    want: /^45 .*: drive: a disk on the bus ide needs a restart/,
  },
  'a disk that the guest already has': {
    verb: 'hotplugDisk',
    with: () => ({ drive: { path: 'a.img' } }),
    want: '45 Failed to hot-plug disk: drive: already plugged in as disk-virtio0',
  },
  'an optional disk that does not exist': {
    verb: 'hotplugDisk',
    with: () => ({ drive: { path: 'none.img', optional: 'true' } }),
    want: /^45 .*it does not exist$/,
  },
  'an address that is occupied': {
    verb: 'hotplugNic',
    with: () => ({ nic: { address: pci('0x02') } }),
    want: '49 Failed to hot-plug NIC: nic.address: 0000:00:02.0 is occupied or not available in the running guest',
  },
  'a MAC address that the guest already has': {
    verb: 'hotplugNic',
    with: () => ({ nic: { macAddr: '02:00:00:00:00:AA' } }),
    want: '49 Failed to hot-plug NIC: nic: already plugged in as nic-net0',
  },
  'a disk that is not in the guest': {
    verb: 'hotunplugDisk',
    with: () => ({ drive: { path: 'b.img' } }),
    want: '46 Failed to hot-unplug disk: drive: {"path":"b.img"} is not in the guest',
  },
  'a drive that cannot be unplugged': {
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
  test(`refuses, for a running VM, ${name}`, async (t) => {
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

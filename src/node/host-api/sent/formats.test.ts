import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostDevice, HostVm } from '#api/host-api.ts';
import { aVm, startHostScene } from '#node/host-api/testing/host-scene.ts';

function addressText({ address }: HostDevice): string {
  if (address === undefined || address === '') return '';
  const { type, bus, slot, unit } = address;
  return type === 'pci' ? `pci ${bus} ${slot}` : `${type} ${bus} ${unit}`;
}

function addressesByAlias({ devices }: HostVm): Record<string, string> {
  return Object.fromEntries(devices.map((device) => [String(device.alias), addressText(device)]));
}

const network = {
  macAddr: '00:1a:4a:16:99:42,00:1a:4a:16:99:43',
  nicModel: 'pv,rtl8139',
};

test('places the devices of the old format as libvirt did, regardless of their order', async (t) => {
  const scene = await startHostScene(t);
  scene.image('p/d/images/i/v1', 'x');
  for (const name of ['b.img', 'c.img', 'w.vfd', 'w.iso']) scene.image(name);
  const volume = { poolID: 'p', domainID: 'd', imageID: 'i', volumeID: 'v1' };
  const drives = [
    { path: 'b.img', if: 'virtio' },
    { ...volume, format: 'raw', if: 'virtio', boot: 'true' },
    { path: 'c.img', if: 'ide' },
  ];
  const more = { floppy: 'w.vfd', cdrom: '/rhev/data-center/w.iso', soundDevice: 'ich6', spiceMonitors: '2' };
  const created = await scene.call('create', { ...aVm, display: 'qxl', boot: 'cdn', drives, ...network, ...more });
  assert.equal(created.status.message, 'Done');
  assert.equal(created.notes?.length, 2);
  for (const note of created.notes)
    assert.match(note, /"dev-video[01]" \(video\/qxl at 0000:00:0[29]\.0\) is replaced with a standard VGA/);
  const vm = await scene.vm();
  assert.deepEqual(addressesByAlias(vm), {
    'dev-video0': 'pci 0x00 0x02',
    'nic-net0': 'pci 0x00 0x03',
    'nic-net1': 'pci 0x00 0x04',
    'dev-sound0': 'pci 0x00 0x05',
    // Slot 06 belonged to the controller of the agent channel.
    'disk-virtio0': 'pci 0x00 0x07',
    'disk-virtio1': 'pci 0x00 0x08',
    'dev-video1': 'pci 0x00 0x09',
    'disk-ide2': 'drive 1 0',
    'disk-ide0': 'drive 0 0',
    'disk-fdc0': 'drive 0 0',
  });
  assert.equal(vm['boot'], 'cdn');
  assert.equal(vm['soundDevice'], 'ich6', 'list reports keys of the old format');
  assert.deepEqual(vm['drives'], drives);
});

test('reads unmanaged devices from custom properties and keeps their addresses', async (t) => {
  const scene = await startHostScene(t);
  const address = { type: 'pci', domain: '0x0000', bus: '0x00', slot: '0x0b', function: '0x0' };
  const custom = {
    device_a1: JSON.stringify({ type: 'controller', device: 'virtio-serial', address }),
    device_b2: 'VmDevice {type=controller}',
    sap_agent: 'true',
  };
  assert.equal(await scene.status('create', { ...aVm, custom, devices: [] }), '0 Done');
  const vm = await scene.vm();
  assert.deepEqual(vm['custom'], custom);
  const found = vm.devices.find(({ deviceId }) => deviceId === 'a1');
  assert.deepEqual(found?.address, address);
  assert.equal(found?.managed, false);
});

test('leaves out an optional disk that is missing, with a note', async (t) => {
  const scene = await startHostScene(t);
  const disk = { type: 'disk', device: 'disk', path: 'none.img', optional: 'true' };
  const { status, notes } = await scene.call('create', { ...aVm, devices: [disk] });
  assert.equal(status.code, 0);
  assert.match(notes?.at(-1) ?? '', /^devices\[0\] is left out: .*it does not exist$/);
  assert.deepEqual(
    (await scene.vm()).devices.filter(({ type }) => type === 'disk'),
    [],
  );
});

test('leaves out devices that this host does not support, with a note', async (t) => {
  const scene = await startHostScene(t);
  const smartcard = { type: 'smartcard', device: 'smartcard', specParams: { mode: 'host' } };
  const graphics = { type: 'graphics', device: 'vnc' };
  const { notes } = await scene.call('create', { ...aVm, devices: [smartcard, graphics] });
  assert.deepEqual(notes, [
    'display has no effect: there is no VNC or SPICE server',
    'devices[1] is left out: there is no VNC or SPICE server',
    'Device "dev-smartcard0" (smartcard/smartcard) is left out: this hardware is not supported.',
  ]);
});

test('gives the guest only the devices that were sent', async (t) => {
  const scene = await startHostScene(t);
  const sound = { type: 'sound', device: 'ich6' };
  await scene.call('create', {
    ...aVm,
    devices: [sound, { type: 'balloon', device: 'memballoon', specParams: { model: 'none' } }],
  });
  assert.deepEqual(Object.keys(addressesByAlias(await scene.vm())), ['dev-sound0']);
});

const agentChannel = { type: 'channel', device: 'unix' };
const serialController = { type: 'controller', device: 'virtio-serial' };

/** `want`: the devices of the guest, except for the ports of its chipset. */
const exactDevices: Record<string, { sent: Record<string, unknown>; want: string[]; notes?: RegExp[] }> = {
  'none for an empty list': { sent: { devices: [] }, want: [] },
  'none for an empty list on q35': { sent: { devices: [], emulatedMachine: 'q35' }, want: [] },
  'no channel for a virtio-serial controller': { sent: { devices: [serialController] }, want: ['dev-controller0'] },
  'a virtio-serial controller and the agent channel': {
    sent: { devices: [serialController, agentChannel] },
    want: ['dev-controller0', 'agent0'],
  },
  'the agent channel and, with a note, the controller that it needs': {
    sent: { devices: [agentChannel] },
    want: ['virtio-serial0', 'agent0'],
    notes: [/^the guest also has "virtio-serial0" \(controller\/virtio-serial\): a device that was sent needs it$/],
  },
  'the agent channel if vmchannel is on': {
    sent: { devices: [], vmchannel: 'true' },
    want: ['virtio-serial0', 'agent0'],
    notes: [/"virtio-serial0"/],
  },
  'no channel if vmchannel is off': { sent: { devices: [], vmchannel: 'false' }, want: [] },
  'no channel for a program that this host does not have': {
    sent: { devices: [{ ...agentChannel, specParams: { name: 'com.redhat.rhevm.vdsm' } }] },
    want: [],
    notes: [/"dev-channel0" \(channel\/unix\) is left out: this hardware/],
  },
};

for (const [name, { sent, want, notes: patterns = [] }] of Object.entries(exactDevices)) {
  test(`the guest has exactly the devices that were sent: ${name}`, async (t) => {
    const scene = await startHostScene(t);
    const { status, notes = [] } = await scene.call('create', { ...aVm, ...sent });
    assert.equal(status.code, 0, status.message);
    const { devices } = scene.hypervisor().inspect(aVm.vmId)!.definition;
    assert.deepEqual(
      devices.flatMap(({ id, type }) => (type === 'root-port' ? [] : [id])),
      want,
    );
    const others = notes.filter((note) => !note.startsWith('display '));
    assert.equal(others.length, patterns.length, others.join('\n'));
    for (const [i, pattern] of patterns.entries()) assert.match(others[i] ?? '', pattern);
  });
}

test('adds the controller that a disk on scsi needs, with a note', async (t) => {
  const scene = await startHostScene(t);
  const disk = { type: 'disk', device: 'disk', iface: 'scsi', path: scene.image('a.img') };
  const { notes = [] } = await scene.call('create', { ...aVm, devices: [disk] });
  assert.ok(notes.some((note) => note.startsWith('the guest also has "scsi0" (controller/virtio-scsi)')));
});

test('boots a kernel from host-images', async (t) => {
  const scene = await startHostScene(t);
  const [kernel, initrd] = [scene.image('vmlinuz'), scene.image('initrd.gz')];
  assert.equal(await scene.status('create', { ...aVm, devices: [], kernel, initrd, kernelArgs: 'quiet' }), '0 Done');
  const definition = scene.hypervisor().inspect(aVm.vmId)?.definition;
  assert.deepEqual(definition?.kernel, { kernelPath: kernel, initrdPath: initrd, arguments: 'quiet' });
});

test('accepts devices in the form in which VMs of launcher pods are listed', async (t) => {
  const scene = await startHostScene(t);
  const devices = [
    { type: 'disk', device: 'disk', deviceId: 'disk-root', specParams: { bus: 'scsi' }, path: scene.image('a.img') },
    { type: 'interface', device: 'e1000e', deviceId: 'nic-default', name: 'default' },
    { type: 'console', device: 'serial', deviceId: 'serial0' },
  ];
  assert.equal(await scene.status('create', { ...aVm, emulatedMachine: 'q35', devices }), '0 Done');
  const definition = scene.hypervisor().inspect(aVm.vmId)?.definition.devices ?? [];
  assert.deepEqual(
    definition.flatMap((device) => {
      if (device.type === 'disk') return [device.bus];
      return device.type === 'interface' ? [device.model] : [];
    }),
    ['e1000e', 'scsi'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostDevice, HostVm } from '#api/host-api.ts';
import { settle } from '#client/testing/fake-clock.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aVm, startHostScene, VM_ID } from '#node/host-api/testing/host-scene.ts';

const DISK_ID = '5f6852c8-844c-40ff-ac9c-cac5d00cbf1b';
const pci = (slot: string) => ({ type: 'pci', domain: '0x0000', bus: '0x00', slot, function: '0x0' });
const deviceWith = ({ devices }: HostVm, deviceId: string) => devices.find((device) => device.deviceId === deviceId);
const placeOf = (device: HostDevice | undefined) => (device?.address as Record<string, string> | undefined)?.['slot'];

test('a VM lives: created, listed, plugged, unplugged, destroyed', async (t) => {
  const scene = await startHostScene(t);
  const path = scene.image('root.img');
  const devices = [
    { type: 'disk', device: 'disk', iface: 'virtio', path, deviceId: DISK_ID, address: pci('0x07'), extra: { a: 1 } },
    { type: 'interface', device: 'bridge', nicModel: 'pv', macAddr: '00:1A:4a:16:99:42', network: '', address: '' },
    { type: 'video', device: 'cirrus', specParams: { vram: '65536' }, address: '' },
  ];
  const created = await scene.call('create', { ...aVm, vmName: 'ingale', custom: { hint: 'x' }, devices });
  assert.deepEqual(created.status, { code: 0, message: 'Done' });
  const first = await scene.vm();
  assert.deepEqual(created.vmList, [first]);
  assert.equal(first.vmName, 'ingale');
  assert.deepEqual(first['custom'], { hint: 'x' });
  assert.equal(first.emulatedMachine, 'pc-i440fx-rhel7.6.0');
  assert.equal(first['boot'], 'c');
  const disk = deviceWith(first, DISK_ID);
  assert.deepEqual(disk?.address, pci('0x07'));
  assert.deepEqual(disk?.['extra'], { a: 1 });
  const nic = first.devices.find(({ type }) => type === 'interface');
  assert.match(nic?.deviceId ?? '', /^[0-9a-f-]{36}$/, 'made up, because none was sent');
  assert.equal(placeOf(nic), '0x03');
  assert.equal(placeOf(first.devices.find(({ type }) => type === 'video')), '0x02');
  assert.match(first.hash ?? '', /^[0-9a-f]{64}$/);
  const hashes = async () => (await scene.call('getAllVmStats')).statsList?.map(({ hash }) => hash);
  assert.deepEqual(await hashes(), [first.hash]);

  const second = scene.image('second.img');
  const plugged = await scene.call('hotplugDisk', { vmId: VM_ID, drive: { iface: 'virtio', path: second } });
  assert.deepEqual(plugged.status, { code: 0, message: 'Done' });
  const after = await scene.vm();
  assert.deepEqual(plugged.vmList, [after]);
  assert.notEqual(after.hash, first.hash);
  assert.deepEqual(await hashes(), [after.hash]);
  assert.ok((after.deviceRevision ?? 0) > (first.deviceRevision ?? 0));
  assert.deepEqual(deviceWith(after, DISK_ID)?.address, pci('0x07'));
  assert.equal(placeOf(after.devices.find((device) => device['path'] === second)), '0x04');

  assert.equal(await scene.status('hotunplugDisk', { vmId: VM_ID, drive: { path: second } }), '0 Done');
  assert.equal((await scene.vm()).hash, first.hash, 'equal for equal devices');
  const mac = { macAddr: '00:1a:4A:16:99:42' };
  assert.equal(await scene.status('hotunplugNic', { vmId: VM_ID, nic: mac }), '0 Done', 'whatever the case of its MAC');
  assert.equal(await scene.status('hotplugNic', { vmId: VM_ID, nic: { ...mac, nicModel: 'pv' } }), '0 Done');

  assert.equal(await scene.status('destroy', { vmId: VM_ID }), '0 Done');
  assert.deepEqual((await scene.call('list')).vmList, []);
  assert.deepEqual((await scene.call('getAllVmStats')).statsList, []);
  assert.equal(await scene.status('destroy', { vmId: VM_ID }), `1 Virtual machine does not exist: vmId "${VM_ID}"`);
});

test('what list tells can be created again, with its hash, and is the same', async (t) => {
  for (const emulatedMachine of ['pc', 'q35']) {
    const scene = await startHostScene(t);
    const iface = emulatedMachine === 'pc' ? 'ide' : 'sata';
    const devices = [
      { type: 'disk', device: 'disk', path: scene.image('a.img') },
      { type: 'disk', device: 'disk', iface: 'scsi', path: scene.image('b.img'), readonly: 'true' },
      { type: 'disk', device: 'cdrom', iface, path: scene.image('c.iso'), bootOrder: '1' },
      { type: 'interface', device: 'bridge' },
      { type: 'balloon', device: 'memballoon', specParams: { model: 'virtio' } },
      { type: 'console', device: 'console' },
      { type: 'controller', device: 'usb', model: 'qemu-xhci' },
      { type: 'tpm', device: 'tpm' },
      { type: 'rng', device: 'virtio', specParams: { source: 'urandom' } },
    ];
    assert.equal(await scene.status('create', { ...aVm, emulatedMachine, devices }), '0 Done');
    const before = await scene.vm();
    assert.equal(await scene.status('destroy', { vmId: VM_ID }), '0 Done');
    assert.equal(await scene.status('create', before), '0 Done');
    const { deviceRevision: _before, ...told } = before;
    const { deviceRevision: _after, ...again } = await scene.vm();
    assert.deepEqual(again, told);
  }
});

test('a hash that is not that of the devices is refused with both', async (t) => {
  const scene = await startHostScene(t);
  const status = await scene.status('create', { ...aVm, hash: 'abc', devices: [] });
  assert.match(status, /^9 Error creating .*: hash: "abc" is not that of the devices, which is "[0-9a-f]{64}"$/);
  assert.equal(scene.hypervisor().list().length, 0);
});

test('the next agent finds VMs of the host API, and what was sent of them', async (t) => {
  const scene = await startHostScene(t);
  const devices = [{ type: 'disk', device: 'disk', path: scene.image('a.img'), deviceId: DISK_ID, note: 'kept' }];
  await scene.call('create', { ...aVm, devices });
  const before = await scene.vm();
  await scene.restart();
  const unread = await scene.vm();
  assert.equal(unread.hash, undefined, 'nothing was read yet');
  assert.equal(deviceWith(unread, DISK_ID)?.['note'], 'kept');
  assert.equal(await scene.status('hotplugNic', { vmId: VM_ID, nic: {} }), '0 Done');
  const after = await scene.vm();
  assert.deepEqual(deviceWith(after, DISK_ID), deviceWith(before, DISK_ID));
});

test('unplugging waits for the guest, for half a minute', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', { ...aVm, devices: [] });
  const path = scene.image('b.img');
  await scene.call('hotplugDisk', { vmId: VM_ID, drive: { path } });
  scene.hypervisor().guest(VM_ID).holdDevices();
  const unplugged = scene.status('hotunplugDisk', { vmId: VM_ID, drive: { path } });
  await settle();
  await scene.clock.advance(29_999);
  assert.ok(
    (await scene.vm()).devices.some((device) => device['path'] === path),
    'others are answered meanwhile',
  );
  await scene.clock.advance(1);
  assert.equal(
    await unplugged,
    '46 Failed to hot-unplug disk: the guest has not let go of disk-virtio0 in 30 seconds; it may do so later',
  );
  scene.hypervisor().guest(VM_ID).letGo();
  const again = await scene.status('hotunplugDisk', { vmId: VM_ID, drive: { path } });
  assert.match(again, /^46 .* is not in the guest$/, 'it went all the same');
  assert.equal(await scene.status('hotplugDisk', { vmId: VM_ID, drive: { path } }), '0 Done');
});

test('a guest that lets go in time is told as done', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', {
    ...aVm,
    devices: [{ type: 'interface', device: 'bridge', macAddr: '02:00:00:00:00:07' }],
  });
  scene.hypervisor().guest(VM_ID).holdDevices();
  const unplugged = scene.status('hotunplugNic', { vmId: VM_ID, nic: { macAddr: '02-00-00-00-00-07' } });
  await settle();
  scene.hypervisor().guest(VM_ID).letGo();
  assert.equal(await unplugged, '0 Done');
});

test('VMs of launcher pods are listed, and left to the API server', async (t) => {
  const scene = await startHostScene(t);
  const definition = aDefinition();
  await scene.hypervisor().create(definition);
  const { vmList } = await scene.call('list', { onlyUUID: true });
  assert.deepEqual(vmList, [definition.id]);
  assert.equal((await scene.vm(definition.id)).vmName, 'default/guest');
  const vmId = definition.id;
  assert.equal(
    await scene.status('destroy', { vmId }),
    '16 Unexpected exception: "default/guest" is run by a launcher pod; stop it with virtctl',
  );
  assert.match(await scene.status('hotplugNic', { vmId, nic: {} }), /^49 Failed to hot-plug NIC: .* launcher pod/);
  assert.match(await scene.status('hotunplugDisk', { vmId, drive: {} }), /^46 .* launcher pod/);
  assert.equal(await scene.status('create', { ...aVm, vmId }), `4 Virtual machine already exists: ${vmId}`);
});

test('what fails leaves nothing behind', async (t) => {
  const scene = await startHostScene(t);
  scene.hypervisor().failNextCreate(new HypervisorError('no memory left'));
  const status = await scene.status('create', { ...aVm, devices: [] });
  assert.equal(status, '9 Error creating the requested virtual machine: no memory left');
  assert.equal(await scene.status('create', { ...aVm, devices: [] }), '0 Done');
  const before = await scene.vm();
  scene.hypervisor().failNextPlug(new HypervisorError('no such bus'));
  assert.equal(await scene.status('hotplugNic', { vmId: VM_ID, nic: {} }), '49 Failed to hot-plug NIC: no such bus');
  assert.deepEqual(await scene.vm(), before);
});

test('a VM whose guest has ended is down until it is destroyed', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', { ...aVm, devices: [] });
  scene.hypervisor().guest(VM_ID).shutDown();
  assert.deepEqual((await scene.call('list')).vmList, [{ vmId: VM_ID, status: 'Down' }]);
  assert.match(await scene.status('hotplugNic', { vmId: VM_ID, nic: {} }), /^49 .*: the guest does not run$/);
  assert.match(await scene.status('create', { ...aVm, devices: [] }), /^4 /);
  assert.equal(await scene.status('destroy', { vmId: VM_ID.toUpperCase() }), '0 Done');
});

test('of two that create one VM, one is told that it exists', async (t) => {
  const scene = await startHostScene(t);
  const vm = { ...aVm, devices: [] };
  const both = await Promise.all([scene.status('create', vm), scene.status('create', vm)]);
  assert.deepEqual(both, ['0 Done', `4 Virtual machine already exists: ${VM_ID}`]);
});

test('a caller who has gone leaves no VM behind', async (t) => {
  const scene = await startHostScene(t);
  const { status } = await scene.call('create', { ...aVm, devices: [] }, AbortSignal.abort());
  assert.equal(status.code, 16);
  assert.deepEqual(scene.hypervisor().list(), []);
  assert.equal(await scene.status('create', { ...aVm, devices: [] }), '0 Done');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostDevice, HostVm } from '#api/host-api.ts';
import { settle } from '#lib/testing/fake-clock.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aVm, startHostScene, VM_ID } from '#node/host-api/testing/host-scene.ts';

const DISK_ID = '5f6852c8-844c-40ff-ac9c-cac5d00cbf1b';
const pci = (slot: string) => ({ type: 'pci', domain: '0x0000', bus: '0x00', slot, function: '0x0' });
const deviceWith = ({ devices }: HostVm, deviceId: string) => devices.find((device) => device.deviceId === deviceId);
const slotOf = (device: HostDevice | undefined) => (device?.address as Record<string, string> | undefined)?.['slot'];

test('creates, lists, hotplugs, unplugs and destroys a VM', async (t) => {
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
  assert.match(nic?.deviceId ?? '', /^[0-9a-f-]{36}$/, 'generated, because none was sent');
  assert.equal(slotOf(nic), '0x03');
  assert.equal(slotOf(first.devices.find(({ type }) => type === 'video')), '0x02');
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
  assert.equal(slotOf(after.devices.find((device) => device['path'] === second)), '0x04');

  assert.equal(await scene.status('hotunplugDisk', { vmId: VM_ID, drive: { path: second } }), '0 Done');
  assert.equal((await scene.vm()).hash, first.hash, 'equal devices have equal hashes');
  const mac = { macAddr: '00:1a:4A:16:99:42' };
  assert.equal(
    await scene.status('hotunplugNic', { vmId: VM_ID, nic: mac }),
    '0 Done',
    'the case of the MAC address does not matter',
  );
  assert.equal(await scene.status('hotplugNic', { vmId: VM_ID, nic: { ...mac, nicModel: 'pv' } }), '0 Done');

  assert.equal(await scene.status('destroy', { vmId: VM_ID }), '0 Done');
  assert.deepEqual((await scene.call('list')).vmList, []);
  assert.deepEqual((await scene.call('getAllVmStats')).statsList, []);
  assert.equal(await scene.status('destroy', { vmId: VM_ID }), `1 Virtual machine does not exist: vmId "${VM_ID}"`);
});

test('creates the same VM again from the output of list, including its hash', async (t) => {
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
    const { deviceRevision: _before, ...first } = before;
    const { deviceRevision: _after, ...again } = await scene.vm();
    assert.deepEqual(again, first);
  }
});

test('refuses a hash that does not match the devices, and names both hashes', async (t) => {
  const scene = await startHostScene(t);
  const status = await scene.status('create', { ...aVm, hash: 'abc', devices: [] });
  assert.match(status, /^9 Error creating .*: hash: "abc"; the hash of the devices is "[0-9a-f]{64}"$/);
  assert.equal(scene.hypervisor().list().length, 0);
});

test('the next agent finds VMs of the host API and the parameters that were sent', async (t) => {
  const scene = await startHostScene(t);
  const devices = [{ type: 'disk', device: 'disk', path: scene.image('a.img'), deviceId: DISK_ID, note: 'kept' }];
  await scene.call('create', { ...aVm, devices });
  const before = await scene.vm();
  await scene.restart();
  const unread = await scene.vm();
  assert.equal(unread.hash, undefined, 'the devices have not been read yet');
  assert.equal(deviceWith(unread, DISK_ID)?.['note'], 'kept');
  assert.equal(await scene.status('hotplugNic', { vmId: VM_ID, nic: {} }), '0 Done');
  const after = await scene.vm();
  assert.deepEqual(deviceWith(after, DISK_ID), deviceWith(before, DISK_ID));
});

test('waits 30 seconds for the guest to release a device', async (t) => {
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
    'other calls are answered meanwhile',
  );
  await scene.clock.advance(1);
  assert.equal(
    await unplugged,
    '46 Failed to hot-unplug disk: the guest did not release disk-virtio0 within 30 seconds; it may do so later',
  );
  scene.hypervisor().guest(VM_ID).releaseDevices();
  const again = await scene.status('hotunplugDisk', { vmId: VM_ID, drive: { path } });
  assert.match(again, /^46 .* is not in the guest$/, 'the guest released it later');
  assert.equal(await scene.status('hotplugDisk', { vmId: VM_ID, drive: { path } }), '0 Done');
});

test('answers Done if the guest releases the device in time', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', {
    ...aVm,
    devices: [{ type: 'interface', device: 'bridge', macAddr: '02:00:00:00:00:07' }],
  });
  scene.hypervisor().guest(VM_ID).holdDevices();
  const unplugged = scene.status('hotunplugNic', { vmId: VM_ID, nic: { macAddr: '02-00-00-00-00-07' } });
  await settle();
  scene.hypervisor().guest(VM_ID).releaseDevices();
  assert.equal(await unplugged, '0 Done');
});

test('lists VMs of launcher pods and refuses to change them', async (t) => {
  const scene = await startHostScene(t);
  const definition = aDefinition();
  await scene.hypervisor().create(definition);
  const { vmList } = await scene.call('list', { onlyUUID: true });
  assert.deepEqual(vmList, [definition.id]);
  assert.equal((await scene.vm(definition.id)).vmName, 'default/guest');
  const vmId = definition.id;
  assert.equal(
    await scene.status('destroy', { vmId }),
    '16 Unexpected exception: "default/guest" belongs to a launcher pod; stop it with virtctl',
  );
  assert.match(await scene.status('hotplugNic', { vmId, nic: {} }), /^49 Failed to hot-plug NIC: .* launcher pod/);
  assert.match(await scene.status('hotunplugDisk', { vmId, drive: {} }), /^46 .* launcher pod/);
  assert.equal(await scene.status('create', { ...aVm, vmId }), `4 Virtual machine already exists: ${vmId}`);
});

test('a failed call leaves nothing behind', async (t) => {
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

test('reports a VM whose guest has ended as Down until it is destroyed', async (t) => {
  const scene = await startHostScene(t);
  await scene.call('create', { ...aVm, devices: [] });
  scene.hypervisor().guest(VM_ID).shutDown();
  assert.deepEqual((await scene.call('list')).vmList, [{ vmId: VM_ID, status: 'Down' }]);
  assert.match(await scene.status('hotplugNic', { vmId: VM_ID, nic: {} }), /^49 .*: the guest is not running$/);
  assert.match(await scene.status('create', { ...aVm, devices: [] }), /^4 /);
  assert.equal(await scene.status('destroy', { vmId: VM_ID.toUpperCase() }), '0 Done');
});

test('of two concurrent creates of one VM, the second is refused', async (t) => {
  const scene = await startHostScene(t);
  const vm = { ...aVm, devices: [] };
  const both = await Promise.all([scene.status('create', vm), scene.status('create', vm)]);
  assert.deepEqual(both, ['0 Done', `4 Virtual machine already exists: ${VM_ID}`]);
});

test('creates no VM if the caller has disconnected', async (t) => {
  const scene = await startHostScene(t);
  const { status } = await scene.call('create', { ...aVm, devices: [] }, AbortSignal.abort());
  assert.equal(status.code, 16);
  assert.deepEqual(scene.hypervisor().list(), []);
  assert.equal(await scene.status('create', { ...aVm, devices: [] }), '0 Done');
});

/**
 * Disks and NICs that are plugged and unplugged while the guest runs, on the whole plane: their addresses and their
 * reports.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
/** Longer than the agent waits before it repeats its request to a guest that does not release a device. */
const RETRY_MS = 35_000;

const volumeOf = (claimName: string) => ({ persistentVolumeClaim: { claimName, hotpluggable: true } });

/** Adds a volume like virtctl addvolume: to the VM (`persist`), or to its instance for this run only. */
async function addVolume(plane: VmPlane, vm: string, name: string, { bus = 'scsi', persist = true } = {}) {
  const resource = persist ? 'virtualmachines' : 'virtualmachineinstances';
  const body = { name, disk: { disk: { bus }, serial: name.toUpperCase() }, volumeSource: volumeOf(name) };
  const { status, body: answer } = await plane.call('PUT', `${SUBRESOURCES}/${resource}/${vm}/addvolume`, { body });
  assert.equal(status, 202, JSON.stringify(answer));
  await plane.settle();
}

async function removeVolume(plane: VmPlane, vm: string, name: string, { persist = true } = {}): Promise<void> {
  const resource = persist ? 'virtualmachines' : 'virtualmachineinstances';
  const url = `${SUBRESOURCES}/${resource}/${vm}/removevolume`;
  const { status, body } = await plane.call('PUT', url, { body: { name } });
  assert.equal(status, 202, JSON.stringify(body));
  await plane.settle();
}

/** Returns the devices of the guest by id and address, without ports and permanent devices. */
function placesOf(plane: VmPlane, vm: string): Record<string, string> {
  const { devices } = plane.guest(vm).definition;
  const plugged = devices.filter(({ type }) => type === 'disk' || type === 'interface');
  return Object.fromEntries(plugged.map(({ id, address }) => [id, placeText(address)]));
}

const placeText = (address: Loose): string =>
  address === undefined ? 'none' : address.type === 'pci' ? `bus ${address.bus}` : `unit ${address.unit}`;

async function rowOf(plane: VmPlane, vm: string, id: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachineIdentity', vm);
  return status.devices.find((device: Loose) => device.id === id);
}

async function conditionOf(plane: VmPlane, kind: string, name: string, type: string): Promise<Loose> {
  const { status } = await plane.get(kind, name);
  return status.conditions.find((condition: Loose) => condition.type === type);
}

async function hotplugOf(plane: VmPlane, vm: string): Promise<Record<string, string>> {
  const { status } = await plane.get('VirtualMachineInstance', vm);
  return Object.fromEntries((status.hotplug ?? []).map(({ device, phase }: Loose) => [device, phase]));
}

const withNics = (...nics: Loose[]) => ({
  kind: 'VirtualMachine',
  metadata: { name: 'vm' },
  spec: {
    template: {
      spec: {
        domain: { devices: { interfaces: nics.map((nic) => ({ bridge: {}, ...nic })) } },
        networks: nics.map(({ name }) => ({ name, multus: { networkName: `br-${name}` } })),
      },
    },
  },
});

test('hotplug', async (t) => {
  const plane = await startVmPlane(t);
  for (const name of ['a', 'b']) await plane.apply(aNetworkDefinition(`br-${name}`));
  for (const name of ['one', 'two', 'three', 'brief']) await plane.apply(aClaim(name, { storageClassName: 'shared' }));
  await plane.apply(
    aVm('vm', ALWAYS, { domain: { devices: { interfaces: [{ name: 'a', bridge: {} }] } }, ...nets('a') }),
  );

  await t.test('a volume is added while the guest runs, and has the same address after a restart', async () => {
    const instance = (await plane.get('VirtualMachineInstance', 'vm')).metadata.uid;
    await addVolume(plane, 'vm', 'one');
    await addVolume(plane, 'vm', 'two', { bus: 'virtio' });
    assert.equal((await plane.get('VirtualMachineInstance', 'vm')).metadata.uid, instance);
    assert.deepEqual(await hotplugOf(plane, 'vm'), { 'disk-one': 'Ready', 'disk-two': 'Ready' });
    const places = placesOf(plane, 'vm');
    assert.equal(places['disk-one'], 'unit 0');
    assert.deepEqual(Object.keys(places).sort(), ['disk-one', 'disk-two', 'nic-a']);
    for (const [id, place] of Object.entries(places)) {
      assert.equal(placeText((await rowOf(plane, 'vm', id)).address), place, id);
    }
    const { volumeStatus } = (await plane.get('VirtualMachineInstance', 'vm')).status;
    const added = volumeStatus.find(({ name }: Loose) => name === 'one');
    assert.deepEqual([added.phase, added.hotplugVolume], ['Ready', {}]);
    assert.equal(await conditionOf(plane, 'VirtualMachine', 'vm', 'RestartRequired'), undefined);

    await plane.runVerb('restart', 'vm');
    assert.deepEqual(placesOf(plane, 'vm'), places);
  });

  await t.test(
    'a volume for this run only is gone after a restart, and its address was not reused meanwhile',
    async () => {
      const before = placesOf(plane, 'vm');
      await addVolume(plane, 'vm', 'brief', { persist: false });
      assert.deepEqual(placesOf(plane, 'vm'), { ...before, 'disk-brief': 'unit 1' });
      await addVolume(plane, 'vm', 'three');
      assert.equal(placesOf(plane, 'vm')['disk-three'], 'unit 2');
      await plane.runVerb('restart', 'vm');
      assert.deepEqual(placesOf(plane, 'vm'), { ...before, 'disk-three': 'unit 2' });
      await removeVolume(plane, 'vm', 'three');
      assert.deepEqual(placesOf(plane, 'vm'), before);
    },
  );

  await t.test(
    'a guest that does not release a device is reported, asked again, and may release it later',
    async () => {
      const guest = plane.guest('vm');
      guest.holdDevices();
      await removeVolume(plane, 'vm', 'two');
      assert.equal((await hotplugOf(plane, 'vm'))['disk-two'], 'Unplugging');
      const pending = await conditionOf(plane, 'VirtualMachineInstance', 'vm', 'DeviceChangePending');
      assert.deepEqual([pending.status, pending.reason], ['True', 'WaitingForGuest']);
      assert.match(pending.message, /disk-two/);
      assert.ok((await rowOf(plane, 'vm', 'disk-two')) !== undefined, 'the guest has it: its row stays');

      await plane.restartAgent(await nodeOf(plane, 'vm'));
      await plane.advance(RETRY_MS);
      assert.equal((await hotplugOf(plane, 'vm'))['disk-two'], 'Unplugging');
      plane.guest('vm').releaseDevices();
      await plane.settle();
      assert.equal(placesOf(plane, 'vm')['disk-two'], undefined);
      assert.equal(await rowOf(plane, 'vm', 'disk-two'), undefined, 'detached: its row is deleted');
      assert.equal(await conditionOf(plane, 'VirtualMachineInstance', 'vm', 'DeviceChangePending'), undefined);
    },
  );

  await t.test(
    'a NIC is added in the spec, is unplugged, keeps its address and MAC, and is plugged there again',
    async () => {
      await plane.apply(withNics({ name: 'a' }, { name: 'b' }));
      const places = placesOf(plane, 'vm');
      const mac = macOf(plane, 'vm', 'nic-b');
      assert.ok(places['nic-b'] !== undefined && mac !== undefined);
      assert.equal(await conditionOf(plane, 'VirtualMachine', 'vm', 'RestartRequired'), undefined);

      await plane.apply(withNics({ name: 'a' }, { name: 'b', state: 'absent' }));
      assert.equal(placesOf(plane, 'vm')['nic-b'], undefined);
      const row = await rowOf(plane, 'vm', 'nic-b');
      assert.deepEqual([row.plugged, placeText(row.address)], [false, places['nic-b']]);

      await addVolume(plane, 'vm', 'two', { bus: 'virtio' });
      assert.notEqual(placesOf(plane, 'vm')['disk-two'], places['nic-b'], 'its place is reserved');
      await plane.runVerb('restart', 'vm');
      assert.equal(placesOf(plane, 'vm')['nic-b'], undefined);

      await plane.apply(withNics({ name: 'a' }, { name: 'b' }));
      assert.deepEqual([placesOf(plane, 'vm')['nic-b'], macOf(plane, 'vm', 'nic-b')], [places['nic-b'], mac]);
    },
  );

  await t.test('a volume that cannot be prepared reports why, and is plugged when it can be', async () => {
    await addVolume(plane, 'vm', 'late');
    assert.equal((await hotplugOf(plane, 'vm'))['disk-late'], 'Plugging');
    const { status } = await plane.get('VirtualMachineInstance', 'vm');
    assert.match(status.hotplug.find(({ device }: Loose) => device === 'disk-late').message, /late/);
    assert.equal(status.phase, 'Running');
    await plane.apply(aClaim('late', { storageClassName: 'shared' }));
    await plane.advance(RETRY_MS);
    assert.equal((await hotplugOf(plane, 'vm'))['disk-late'], 'Ready');
  });

  await t.test('the server and the agents may crash between a request and its completion', async () => {
    const before = placesOf(plane, 'vm');
    const url = `${SUBRESOURCES}/virtualmachines/vm/removevolume`;
    await plane.call('PUT', url, { body: { name: 'late' } });
    await plane.restartServer({ agents: true });
    const { 'disk-late': _gone, ...rest } = before;
    assert.deepEqual(placesOf(plane, 'vm'), rest);
    assert.equal(await rowOf(plane, 'vm', 'disk-late'), undefined);
  });
});

function nets(...names: string[]): Loose {
  return { networks: names.map((name) => ({ name, multus: { networkName: `br-${name}` } })) };
}

function macOf(plane: VmPlane, vm: string, id: string): string | undefined {
  const device = plane.guest(vm).definition.devices.find((candidate) => candidate.id === id);
  return device?.type === 'interface' ? device.macAddress : undefined;
}

async function nodeOf(plane: VmPlane, vm: string): Promise<string> {
  return (await plane.get('VirtualMachineInstance', vm)).status.nodeName;
}

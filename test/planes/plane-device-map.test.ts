/** Updates of the identity record on the whole plane: which nodes are called, when, and what is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { aNetworkDefinition, GUEST_NETWORK } from '#test/support/secondary-networks.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt';

const NIC = { name: 'default', masquerade: {} };

const recordOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.get('VirtualMachineIdentity', vm)).status;

/** Returns the ids and addresses of the devices that can be plugged. */
function placesOf({ devices }: Loose): Record<string, string> {
  const named = devices.filter(({ type }: Loose) => type === 'disk' || type === 'interface');
  return Object.fromEntries(named.map((row: Loose) => [row.id, JSON.stringify(row.address)]));
}

/** Returns the number of `list` calls during the work. */
async function callsDuring(plane: VmPlane, work: () => Promise<unknown>): Promise<number> {
  const before = plane.server.lists.calls.length;
  await work();
  return plane.server.lists.calls.length - before;
}

/** Adds NICs to the one that the VM has. */
const aVmWithNics = (...names: string[]) => ({
  kind: 'VirtualMachine',
  metadata: { name: 'vm' },
  spec: {
    template: {
      spec: {
        domain: { devices: { interfaces: [NIC, ...names.map((name) => ({ name, bridge: {} }))] } },
        networks: [{ name: 'default', pod: {} }, ...names.map((name) => ({ name, multus: { networkName: name } }))],
      },
    },
  },
});

test('the record follows the guest', async (t) => {
  const plane = await startVmPlane(t);
  for (const object of [GUEST_NETWORK, aNetworkDefinition('late'), aNetworkDefinition('later')])
    await plane.apply(object);
  const lists = () => plane.server.lists;

  await t.test('a start is learned with one call, rows and hash together', async () => {
    assert.equal(await callsDuring(plane, () => plane.apply(aVm('vm', ALWAYS))), 1);
    const vmi = await plane.get('VirtualMachineInstance', 'vm');
    const record = await recordOf(plane, 'vm');
    assert.equal(record.deviceHash, vmi.status.deviceHash);
    assert.equal(record.deviceRevision, vmi.status.deviceRevision);
    assert.equal(record.instance, vmi.metadata.uid);
    assert.ok(record.devices.some(({ id, address }: Loose) => id === 'nic-default' && address.type === 'pci'));
  });

  await t.test('without changes no node is called', async () => {
    assert.equal(await callsDuring(plane, () => plane.advance(120_000)), 0);
  });

  await t.test('a restart with the same hardware calls no node', async () => {
    const before = await recordOf(plane, 'vm');
    assert.equal(await callsDuring(plane, () => plane.runVerb('restart', 'vm')), 0);
    const { instance, learnedAt: _, deviceRevision: __, ...after } = await recordOf(plane, 'vm');
    const { instance: earlier, learnedAt: ___, deviceRevision: ____, ...rest } = before;
    assert.notEqual(instance, earlier);
    assert.deepEqual(after, rest);
  });

  await t.test('a restarted agent reads the same devices, and no node is called', async () => {
    const { node } = plane.startsOf('vm').at(-1)!;
    assert.equal(await callsDuring(plane, () => plane.restartAgent(node)), 0);
  });

  await t.test('a restarted server calls no node', async () => {
    const before = await recordOf(plane, 'vm');
    await plane.restartServer();
    assert.deepEqual(lists().calls, []);
    assert.deepEqual(await recordOf(plane, 'vm'), before);
  });

  await t.test(
    'a device that is plugged in while the guest runs is learned, and keeps its address at the next start',
    async () => {
      assert.ok((await callsDuring(plane, () => plane.apply(aVmWithNics('late')))) >= 1);
      const record = await recordOf(plane, 'vm');
      assert.deepEqual([record.history.at(-1).cause, record.history.at(-1).by], ['edit of the VM', 'admin']);
      assert.match(record.history.at(-1).what, /^nic-late is new at /);
      assert.equal(plane.startsOf('vm').length, 2, 'without a restart');
      assert.equal(await callsDuring(plane, () => plane.runVerb('restart', 'vm')), 0);
      assert.deepEqual(placesOf(await recordOf(plane, 'vm')), placesOf(record));
    },
  );

  await t.test('a call that fails is retried, and nothing is lost or written meanwhile', async () => {
    const before = await recordOf(plane, 'vm');
    lists().failures = 2;
    assert.equal(await callsDuring(plane, () => plane.apply(aVmWithNics('late', 'later'))), 1);
    const { recorded: _, history: __, ...meanwhile } = await recordOf(plane, 'vm');
    const { recorded: ___, history: ____, ...known } = before;
    assert.deepEqual(meanwhile, known, 'only the MAC address, which is in the spec, is recorded');
    assert.ok((await callsDuring(plane, () => plane.advance(5000))) >= 2);
    assert.equal(lists().failures, 0);
    const after = await recordOf(plane, 'vm');
    assert.notEqual(after.deviceHash, before.deviceHash);
    assert.deepEqual({ ...placesOf(after), ...placesOf(before) }, placesOf(after), 'no device has moved');
    assert.ok('nic-later' in placesOf(after));
  });

  await t.test('a node that reports no hash, or reports another one and does not answer, clears nothing', async () => {
    const before = await recordOf(plane, 'vm');
    const { node } = plane.startsOf('vm').at(-1)!;
    await plane.killNode(node);
    const reportHash = async (deviceHash: string | null) => {
      const body = { status: { deviceHash, deviceRevision: before.deviceRevision + 1 } };
      const { status, text } = await plane.call('PATCH', `${VMIS}/vm/status`, { body });
      assert.equal(status, 200, text);
      await plane.settle();
    };
    await reportHash(null);
    assert.deepEqual(await recordOf(plane, 'vm'), before);
    await reportHash('0'.repeat(64));
    assert.deepEqual(await recordOf(plane, 'vm'), before);
    await plane.reviveNode(node);
    await plane.advance(20_000);
    assert.equal((await plane.get('VirtualMachineInstance', 'vm')).status.deviceHash, before.deviceHash);
    assert.deepEqual(placesOf(await recordOf(plane, 'vm')), placesOf(before));
  });

  await t.test(
    'the row of a device detached from a stopped VM is deleted, and that of an unplugged one is treated by its kind',
    async () => {
      const disk = (name: string, more: Loose = {}) => ({ name, disk: { bus: 'virtio' }, ...more });
      const withDisks = (...disks: Loose[]) =>
        aVm(
          'cold',
          { runStrategy: 'Halted' },
          {
            domain: { devices: { disks, interfaces: [{ ...NIC }] } },
            volumes: disks.map(({ name }) => ({ name, persistentVolumeClaim: { claimName: `cold-${name}` } })),
          },
        );
      for (const name of ['a', 'b']) await plane.apply(aClaim(`cold-${name}`));
      await plane.apply(withDisks(disk('a'), disk('b')));
      await plane.runVerb('start', 'cold');
      const ran = placesOf(await recordOf(plane, 'cold'));
      await plane.runVerb('stop', 'cold');
      assert.deepEqual(placesOf(await recordOf(plane, 'cold')), ran);

      const unplugged = withDisks(disk('a', { plugged: false }));
      unplugged.spec.template.spec.domain.devices.interfaces[0].state = 'absent';
      await plane.apply(unplugged);
      const record = await recordOf(plane, 'cold');
      const rows = Object.fromEntries(record.devices.map((row: Loose) => [row.id, row]));
      assert.deepEqual([rows['disk-a'].plugged, rows['disk-a'].address], [false, undefined]);
      assert.deepEqual([rows['nic-default'].plugged, rows['disk-b']], [false, undefined]);
      assert.equal(JSON.stringify(rows['nic-default'].address), ran['nic-default']);
      assert.equal(record.deviceHash, undefined);
    },
  );

  await t.test('imported devices are recorded before the first start, which uses their addresses', async () => {
    const address = { type: 'pci', domain: '0x0000', bus: '0x05', slot: '0x00', function: '0x0' };
    const row = { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default', address, managed: true };
    const vm = aVm('moved', ALWAYS);
    const imported = { from: 'OVF of oVirt 4.1', machine: 'pc-q35-6.2', devices: [row] };
    vm.metadata.annotations = { [IMPORTED_DEVICES_ANNOTATION]: JSON.stringify(imported) };
    await plane.apply(vm);
    const { devices } = plane.startsOf('moved')[0]!.machine;
    assert.deepEqual(devices.find(({ id }) => id === 'nic-default')?.address, address);
    const record = await recordOf(plane, 'moved');
    assert.deepEqual(JSON.parse(placesOf(record)['nic-default']!), address);
    assert.equal(record.history[0].what, 'imported from OVF of oVirt 4.1 with 1 devices');
  });

  await t.test('a change of the chipset drops all addresses, with an entry in the history', async () => {
    const emulatedMachines = ['q35*', 'pc-q35*', 'pc', 'pc-i440fx*'];
    const body = { spec: { configuration: { emulatedMachines } } };
    const { status, text } = await plane.call('PATCH', KUBEVIRT, { body });
    assert.equal(status, 200, text);
    await plane.apply(aVm('chip', ALWAYS));
    const before = await recordOf(plane, 'chip');
    const machine = { type: 'pc-i440fx-7.2' };
    await plane.apply(aVm('chip', ALWAYS, { domain: { machine } }));
    await plane.runVerb('restart', 'chip');
    const after = await recordOf(plane, 'chip');
    assert.equal(after.machine.type, 'pc-i440fx-7.2');
    assert.notEqual(placesOf(after)['nic-default'], placesOf(before)['nic-default']);
    assert.ok(!after.devices.some(({ device }: Loose) => device === 'pcie-root-port'));
    assert.match(after.history.at(-1).what, /; chipset changed from q35 to i440fx: no device keeps its address; /);
  });
});

test('VMs that start together are read with one call', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  for (let n = 0; n < 10; n++) await plane.beginApply(aVm(`vm-${n}`, ALWAYS));
  await plane.settle();
  const { calls } = plane.server.lists;
  assert.equal(
    calls.reduce((sum, { vms }) => sum + vms, 0),
    10,
  );
  assert.ok(calls.length <= 3, JSON.stringify(calls));

  await t.test('a change of specialManagedDevices applies to all VMs at once, and no node is called', async () => {
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'vm-9' }, spec: { runStrategy: 'Halted' } });
    const setSpecialDevices = async (specialManagedDevices: Loose[] | null) => {
      const body = { spec: { configuration: { specialManagedDevices } } };
      const { status, text } = await plane.call('PATCH', KUBEVIRT, { body });
      assert.equal(status, 200, text);
      await plane.settle();
    };
    const readManagedFlags = async () => {
      const records = await Promise.all(Array.from({ length: 10 }, (_, n) => recordOf(plane, `vm-${n}`)));
      return records.map(({ devices }) => devices.find(({ id }: Loose) => id === 'scsi0').managed);
    };
    assert.deepEqual(new Set(await readManagedFlags()), new Set([false]));
    assert.equal(await callsDuring(plane, () => setSpecialDevices([{ type: 'controller', device: 'virtio-scsi' }])), 0);
    assert.deepEqual(new Set(await readManagedFlags()), new Set([true]));
    assert.equal(await callsDuring(plane, () => setSpecialDevices(null)), 0);
    assert.deepEqual(new Set(await readManagedFlags()), new Set([false]));
  });
});
